import { configType, identity } from '@overlay/model'
import type { ChangeLog, Source } from '@overlay/platform/change-log'
import type { Names } from '@overlay/platform/kind-store'
import { type Check, copies, type Followed, heard, references } from '@overlay/platform/maintenance'
import type { Logger } from 'pino'
import sql from 'sql-template-tag'
import { forgetHosting, hostedServices } from '../store/hosting.js'
import { correctCas } from '../store/known-cas.js'
import { correctConfigTypes, forgetConfigTypes, namedConfigTypes } from '../store/known-config-types.js'
import { authorityEffects, forgetCas } from './pki.js'
import { removeRouterIdentities, routerEffects } from './sessions.js'

export interface Checked {
  readonly changeLog: ChangeLog
  readonly names: Names
  readonly sources: { readonly pki: Source; readonly policy: Source; readonly sessions: Source }
  readonly followed: Followed
  readonly log: Logger
}

/** What holds between this schema and others, besides what the database itself sees to. */
export function checksOf({ changeLog, names, sources, followed, log }: Checked): readonly Check[] {
  const grounds = { changeLog, names, followed }
  return [
    heard(followed),
    copies(
      changeLog,
      { source: sources.pki, followed, kinds: authorityEffects.kinds, apply: correctCas },
      log,
    ),
    ...Object.entries(reliers).map(([what, from]) =>
      references(grounds, {
        what,
        from,
        to: ['cas'],
        repair: (tx, gone) => forgetCas(tx, sql`= any(${gone})`),
      }),
    ),
    copies(changeLog, { source: sources.sessions, followed, ...routerEffects }, log),
    references(grounds, {
      what: 'router identity',
      from: sql`select id, id as ref from identity where type = 'Router'`,
      to: ['edge-routers'],
      repair: (tx, gone) => removeRouterIdentities(tx, sql`id = any(${gone})`),
    }),
    references(grounds, {
      what: identity.singular,
      from: hostedServices,
      to: ['services'],
      repair: forgetHosting,
    }),
    copies(
      changeLog,
      { source: sources.policy, followed, kinds: [configType.kind], apply: correctConfigTypes },
      log,
    ),
    references(grounds, {
      what: 'known config type',
      from: sql`select id, id as ref from known_config_type`,
      to: ['config-types'],
      repair: forgetConfigTypes,
    }),
    references(grounds, {
      what: 'apiSession',
      from: namedConfigTypes,
      to: ['config-types'],
      repair: forgetConfigTypes,
    }),
  ]
}

/** Who relies on an authority of somebody else. */
const reliers = {
  'known ca': sql`select id, id as ref from known_ca`,
  authenticator: sql`select id, ca_id as ref from authenticator where ca_id is not null`,
  apiSession: sql`select id, ca_id as ref from api_session where ca_id is not null`,
}
