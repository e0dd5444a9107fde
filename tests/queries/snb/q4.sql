SELECT t_name, t_tagid, COUNT(DISTINCT m_messageid) AS posts
FROM tag, message, message_tag, knows
WHERE m_messageid = mt_messageid AND mt_tagid = t_tagid AND m_creatorid = k_person2id
  AND m_c_replyof IS NULL AND k_person1id % 10 = 0
GROUP BY t_name, t_tagid
