-- Up Migration
-- Wrong guesses of all kinds of secrets, by account and source network. Accounts that do not exist leave the same rows.
-- Unlogged: a wrong guess costs no flush, and a crash of the server clears them.

create unlogged table guess (
  kind         text        collate "C" not null,
  account      bytea       not null,
  source       text        collate "C" not null,
  settled_at   timestamptz not null default '-infinity',
  paused_at    timestamptz,
  succeeded_at timestamptz not null default '-infinity',
  primary key (kind, account, source)
);
comment on column guess.account is 'sha-256 of its name, because people type passwords there too; empty: all accounts together';
comment on column guess.source is 'an IPv4 address, an IPv6 network of 64 bits, or ''*'' for all together';
comment on column guess.settled_at is 'each wrong guess moves it into the future: the bucket is empty at this time';
comment on column guess.paused_at is 'the begin of the pause that further wrong guesses prolong';

insert into guess (kind, account, source, succeeded_at)
select 'password', name_digest, source, succeeded_at from login_source where succeeded_at > '-infinity';
drop table login_source;

alter table second_factor drop column failures, drop column failed_at;
