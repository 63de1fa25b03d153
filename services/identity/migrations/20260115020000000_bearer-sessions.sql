-- Up Migration
-- API sessions whose clients present access tokens, and API sessions that tokens of other issuers opened.

alter table api_session drop constraint api_session_method_is_known;
alter table api_session add constraint api_session_method_is_known
  check (method in ('updb', 'cert', 'ext-jwt', 'router'));

alter table api_session add column client_id text collate "C";
alter table api_session add column expires_at timestamptz(3);
alter table api_session add constraint api_session_of_client_expires check ((client_id is null) = (expires_at is null));
create index api_session_by_expiry on api_session (expires_at) where expires_at is not null;
comment on column api_session.client_id is 'the OAuth client to which its access tokens are issued; null: its token is the credential';
comment on column api_session.expires_at is 'end of its last token; takes the place of the idle time-out';
