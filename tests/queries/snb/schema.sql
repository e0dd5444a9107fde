CREATE TABLE person (
  p_personid BIGINT NOT NULL PRIMARY KEY, p_firstname STRING NOT NULL, p_lastname STRING NOT NULL,
  p_creationdate TIMESTAMP);
CREATE TABLE knows (k_person1id BIGINT NOT NULL, k_person2id BIGINT NOT NULL, PRIMARY KEY (k_person1id, k_person2id));
CREATE VIEW knows1 AS SELECT * FROM knows;
CREATE VIEW knows2 AS SELECT * FROM knows;
CREATE TABLE message (
  m_messageid BIGINT NOT NULL PRIMARY KEY, m_creatorid BIGINT NOT NULL, m_c_replyof BIGINT, m_content STRING,
  m_creationdate TIMESTAMP);
CREATE TABLE tag (t_tagid BIGINT NOT NULL PRIMARY KEY, t_name STRING NOT NULL);
CREATE TABLE message_tag (mt_messageid BIGINT NOT NULL, mt_tagid BIGINT NOT NULL, PRIMARY KEY (mt_messageid, mt_tagid));
