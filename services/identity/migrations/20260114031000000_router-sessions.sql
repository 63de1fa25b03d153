-- Up Migration
-- API sessions of routers that are identities themselves: one for each.

alter table api_session drop constraint api_session_method_is_known;
alter table api_session add constraint api_session_method_is_known check (method in ('updb', 'cert', 'router'));
create unique index api_session_is_one_of_its_router on api_session (identity_id) where method = 'router';
comment on column api_session.method is
  'of the authenticator that opened it; router: by its control channel; null: opened before this column existed';
