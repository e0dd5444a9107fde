"""The benchmark suite: the paper's experiments on Crown and on what a user would pick instead.

`workloads` says what is asked, `stream` what changes, `engines` who answers, `experiments` what is varied, `store` and
`report` keep and show the results. `crown bench` is the way in.
"""
