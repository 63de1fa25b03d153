import {
  config,
  configType,
  defaultTerminatorStrategy,
  isTerminatorStrategy,
  type RowOf,
  service,
  type ViewOf,
} from '@overlay/model'
import {
  type Caller,
  type Context,
  Fault,
  invalid,
  type ListResponse,
  notFound,
  type Perspective,
  type Positions,
} from '@overlay/rpc'
import { headsAsText, type WaitForFollowers } from '@overlay/store/change-log'
import { type Kind, kind, namesIn, type ViewRequest, type WriteContext } from '@overlay/store/kind-store'
import type { Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { postureQueries } from '../domain/authorization/posture-queries.js'
import type { AccessType } from '../domain/rows.js'
import { isAdmin, maySee, permissionsOf, policiesOf, visibleIds } from '../domain/state-queries.js'
import type { Engine } from '../engine/engine.js'
import { accessSchemas } from '../engine/progress.js'
import { Overtaken, readOneState } from '../engine/read-one-state.js'
import { configsFor } from '../store/configs-of-services.js'
import { dropRoles } from '../store/roles.js'
import { deleteServiceConfigs } from '../store/service-config.js'
import { farRoles, policyIds, selectsOf, servicePoliciesOf } from './selects.js'

/** The ends of the change logs on which the view depends, as of the row: JSON of `Positions`. */
interface Joined {
  readonly heads: string
}

/** Which services exist, and what they show, depends on the viewer. */
export const services = (engine: Engine, waitForFollowers: WaitForFollowers): Kind => {
  const { state } = engine
  return kind<typeof service, Joined>(
    service,
    {
      scope({ identityId, isAdmin }) {
        return isAdmin ? sql`true` : sql`id = any(${visibleIds(state, { identityId, isAdmin })}::text[])`
      },

      joined: { heads: headsAsText(accessSchemas) },
      viewed: ['id', 'heads'],

      async view(db, rows, reading): Promise<readonly ViewOf<typeof service>[]> {
        const { caller, context, perspective, shape } = reading
        const [first] = rows
        if (shape === 'detail' && first && !needsMemory(perspective, caller))
          await engine.ensureReads(JSON.parse(first.heads) as Positions, context)
        const types = shape === 'linked' ? [] : configTypesOf(caller.configTypes, perspective, shape)
        const configs = await configsFor(db, rows, caller.identityId, types)
        const queriesOf = postureQueries(state, caller)
        return rows.map(({ id }) => {
          if (!caller.isAdmin && !maySee(state, caller, id))
            throw shape === 'detail' ? notFound(service.called, id) : new Overtaken()
          if (shape === 'linked') return { permissions: null, config: null, postureQueries: queriesOf(id) }
          const granted = permissionsOf(state, caller.identityId, id)
          const permissions = granted.length > 0 ? granted : (['Invalid'] as const) // wire: `["Invalid"]` where no policy grants a permission
          const config = types.length === 0 && shape === 'detail' ? null : (configs.get(id) ?? {})
          const queries = queriesOf(id)
          return {
            permissions,
            config,
            postureQueries: queries.length > 0 ? queries : permissions.map(withoutChecks),
          }
        })
      },

      async writing(tx, next, _before, { isWritten, named }) {
        if (isWritten('configs')) await checkConfigs(tx, named, next.configs ?? [])
        const terminatorStrategy = next.terminatorStrategy || defaultTerminatorStrategy
        if (!isTerminatorStrategy(terminatorStrategy))
          throw new Fault('NOT_FOUND', `terminatorStrategy with name ${terminatorStrategy} not found`)
        return { terminatorStrategy }
      },

      async deleting(tx, { id }, { also }) {
        const roles = await dropRoles(tx, 'services', [id])
        const configs = await deleteServiceConfigs(tx, sql`service_id = ${id}`)
        for (const change of [...roles, ...configs]) also(change)
      },
    },
    {
      operations: ({ list, get, delete: remove }) => ({
        // when the answer leaves, its terminators, sessions and hosting costs are deleted, too
        delete: async (request, context) => waitForFollowers(await remove(request, context), context),

        async list(request, context) {
          await engine.ensureReadable(context, accessSchemas)
          const viewed = asIdentity(engine, request.perspective, context)
          if (viewed.caller.isAdmin && (request.within || viewed !== context)) return list(request, viewed) // no gateway caches these
          const read = () => list(request, viewed)
          const isCacheable = (page: ListResponse) =>
            !request.within && viewed === context && page.next.length === 0
          const { answer, key } = await readOneState(engine, viewed.caller, context, read, isCacheable)
          return { ...answer, contentKey: key }
        },

        async get(request, context) {
          const { perspective } = request
          if (!needsMemory(perspective, context.caller)) return get(request, context)
          await engine.ensureReadable(context, accessSchemas)
          const viewed = asIdentity(engine, perspective, context)
          const read = () => get(request, viewed)
          return (await readOneState(engine, viewed.caller, context, read, () => false)).answer
        },
      }),
      // services and policies are rows of this schema
      selects: selectsOf(engine, ['policy'], {
        identities: (id, perspective) => farRoles(servicePoliciesOf(state, perspective, 'right', id)),
        'service-policies': (id) => policyIds(servicePoliciesOf(state, undefined, 'right', id)),
        'edge-routers': (id) => farRoles(policiesOf(state.serviceRouters, 'left', id)),
        'service-edge-router-policies': (id) => policyIds(policiesOf(state.serviceRouters, 'left', id)),
      }),
    },
  )
}

/**
 * Whether memory decides which service is read, or as whom. Otherwise only what it shows depends on memory, and the
 * statement that reads its row reads the heads, too.
 */
const needsMemory = (perspective: Perspective | undefined, { isAdmin }: Caller): boolean =>
  !isAdmin || Boolean(perspective?.asIdentity)

/** The request as the identity that the perspective names would make it. */
function asIdentity(engine: Engine, perspective: Perspective | undefined, context: Context): Context {
  const idOrName = perspective?.asIdentity
  if (!idOrName) return context
  const names = engine.namesOf('identities')
  const identityId = names.has(idOrName) ? idOrName : [...names].find(([, name]) => name === idOrName)?.[0]
  if (identityId === undefined) throw new Fault('NOT_FOUND', `identity with id or name ${idOrName} not found`)
  const caller = { ...context.caller, identityId, isAdmin: isAdmin(engine.state, identityId) }
  return { ...context, caller }
}

/** wire: a detail shows the types of the login; a list may name other types. */
function configTypesOf(
  ofSession: readonly string[],
  perspective: ViewRequest['perspective'],
  shape: ViewRequest['shape'],
): readonly string[] {
  return shape === 'list' && perspective?.hasConfigTypes ? perspective.configTypes : ofSession
}

/** wire: where no policy grants the permission, or no posture check exists at all, one element stands for each. */
const withoutChecks = (permission: AccessType | 'Invalid') => ({
  policyId: `dummy ${permission.toLowerCase()} policy: no posture checks defined`,
  policyType: permission,
  isPassing: true,
  postureQueries: [],
})

/** Refuses configs that do not exist or are of the same type. */
async function checkConfigs(tx: Tx, named: WriteContext['named'], ids: readonly string[]): Promise<void> {
  const missing = ids.find((id) => !named(config, id))
  if (missing !== undefined) throw new Fault('NOT_FOUND', `configs with id ${missing} not found`)
  const byType = new Map<string, string>()
  for (const id of ids.toSorted()) {
    const { name, configTypeId } = named(config, id) as RowOf<typeof config>
    const other = byType.get(configTypeId)
    if (other !== undefined) {
      const type = (await namesIn(tx, configType, [configTypeId])).get(configTypeId)
      throw invalid(
        'configs',
        `duplicate configs named ${other} and ${name} found for config type ${type}. Only one config of a given typed is allowed per service `,
        ids,
      )
    }
    byType.set(configTypeId, name)
  }
}
