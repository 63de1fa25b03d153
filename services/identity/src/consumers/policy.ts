import { type Check, type CheckDeps, copies, references } from '@overlay/maintenance'
import { configType, identity, service } from '@overlay/model'
import type { Change } from '@overlay/rpc'
import {
  type ConsumerDefinition,
  deletedIds,
  type Effects,
  isDeleted,
  type Source,
} from '@overlay/store/change-log'
import { deletedSince, type Names, payloadDecoder, required } from '@overlay/store/kind-store'
import {
  configTypeIds,
  configTypesOfSessions,
  correctConfigTypes,
  removeConfigTypes,
  storeConfigTypes,
  storedConfigTypes,
} from '../store/config-types.js'
import { hostedServiceIds, hostedServices, removeHosting } from '../store/identities.js'

export const policyConsumer = (source: Source, names: Names): ConsumerDefinition => ({
  source,
  effects: policyEffects(names),
  recordsDeletionsOf: [service.kind],
})

/**
 * differs: a service that is deleted is removed from the hosting costs and precedences of identities. A config type is
 * removed from the API sessions that name it. Config types are locked before identities, as a login does.
 */
export const policyEffects = (names: Names): Effects => ({
  kinds: [service.kind, configType.kind],

  concerns: (change) => change.kind === configType.kind || isDeleted(change),

  async apply(tx, changes) {
    const last = [...new Map(changes.map((change) => [`${change.kind} ${change.id}`, change])).values()]
    await storeConfigTypes(tx, configTypeNamesIn(last.filter(({ kind }) => kind === configType.kind)))
    const sessions = await removeConfigTypes(tx, deletedIds(last, configType.kind))
    return [...sessions, ...(await removeHosting(tx, deletedIds(last, service.kind)))]
  },

  async reload(tx, rows) {
    for await (const page of rows.pages(configType.kind)) await storeConfigTypes(tx, configTypeNamesIn(page))
    const types = await deletedSince(tx, names, configType.kind, rows, configTypeIds)
    const sessions = await removeConfigTypes(tx, types)
    const services = await deletedSince(tx, names, service.kind, rows, hostedServiceIds)
    return [...sessions, ...(await removeHosting(tx, services))]
  },
})

const configTypeIn = payloadDecoder(configType)

/** The names in these changes, by id, without deletions. */
const configTypeNamesIn = (changes: readonly Change[]): Map<string, string> =>
  new Map(
    changes.flatMap((change) => {
      const row = configTypeIn(change)
      return row ? [[change.id, required(row.name)] as const] : []
    }),
  )

export const policyChecks = (source: Source, deps: CheckDeps): readonly Check[] => [
  references(deps, {
    what: identity.singular,
    from: hostedServices,
    to: [service.kind],
    repair: removeHosting,
  }),
  copies(deps, {
    source,
    kinds: [configType.kind],
    apply: (tx, changes) => correctConfigTypes(tx, configTypeNamesIn(changes)),
  }),
  ...[
    { what: 'known config type', from: storedConfigTypes },
    { what: 'apiSession', from: configTypesOfSessions },
  ].map((names) => references(deps, { ...names, to: [configType.kind], repair: removeConfigTypes })),
]
