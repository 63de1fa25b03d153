-- Up Migration
-- What the endpoints of an identity say of themselves fits 64 KiB. Rows that were larger would fit no message.

update posture_data set data = data || '{"processes": []}' where octet_length(data::text) > 128 * 1024;
