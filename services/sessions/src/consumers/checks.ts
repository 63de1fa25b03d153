import type { ChangeLog, Source } from '@overlay/platform/change-log'
import type { Names } from '@overlay/platform/kind-store'
import { type Check, copies, type Followed, heard, references } from '@overlay/platform/maintenance'
import type { Logger } from 'pino'
import sql from 'sql-template-tag'
import { endTerminators } from '../kinds/terminator.js'
import { correctNames, forgetServices } from '../store/known-service.js'
import { endSessions } from '../store/session.js'
import type { AskPolicy, Heads } from '../sweep/access.js'
import { accessCheck } from '../sweep/access-check.js'

export interface Checked {
  readonly changeLog: ChangeLog
  readonly names: Names
  readonly policy: AskPolicy
  readonly heads: Heads
  readonly sources: { readonly policy: Source }
  readonly followed: Followed
  readonly log: Logger
}

/** What holds between this schema and others, besides what the database itself sees to. */
export function checksOf({
  changeLog,
  names,
  policy,
  heads,
  sources,
  followed,
  log,
}: Checked): readonly Check[] {
  const grounds = { changeLog, names, followed }
  return [
    heard(followed),
    references(grounds, {
      what: 'session',
      from: sql`select id, api_session_id as ref from session`,
      to: ['api-sessions'],
      repair: (tx, gone) => endSessions(tx, sql`api_session_id = any(${gone})`),
    }),
    references(grounds, {
      what: 'session',
      from: sql`select id, identity_id as ref from session`,
      to: ['identities'],
      repair: (tx, gone) => endSessions(tx, sql`identity_id = any(${gone})`),
    }),
    references(grounds, {
      what: 'session',
      from: sql`select id, service_id as ref from session`,
      to: ['services'],
      repair: (tx, gone) => endSessions(tx, sql`service_id = any(${gone})`),
    }),
    accessCheck({ changeLog, policy, heads, followed }),
    references(grounds, {
      what: 'terminator',
      from: sql`select id, service_id as ref from terminator`,
      to: ['services'],
      repair: (tx, gone) => endTerminators(tx, sql`service_id = any(${gone})`),
    }),
    copies(changeLog, { source: sources.policy, followed, kinds: ['services'], apply: correctNames }, log),
    references(grounds, {
      what: 'name of service',
      from: sql`select id, id as ref from known_service`,
      to: ['services'],
      repair: forgetServices,
    }),
  ]
}
