-- Up Migration
-- Limits the posture data of an identity to 64 KiB, so that a row fits a message.

update posture_data set data = data || '{"processes": []}' where octet_length(data::text) > 128 * 1024;
