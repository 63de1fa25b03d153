import { untilAborted } from '@overlay/process/async'
import { Fault } from '@overlay/rpc'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { as, named, networkOfFile, newName } from './network.js'

const { network, policy } = await networkOfFile()

const labels = ['a', 'b', 'c'] as const
const some = fc.subarray([...labels])
/** One write. Services, configs and policies are named by their place. */
const write = fc.oneof(
  fc.record({ to: fc.constant('policies' as const), at: fc.nat(2), roles: some }),
  fc.record({ to: fc.constant('services' as const), at: fc.nat(2), roles: some }),
  fc.record({ to: fc.constant('identities' as const), roles: some }),
  fc.record({ to: fc.constant('configs' as const), at: fc.nat(2), value: fc.nat(99) }),
)

interface Model {
  readonly identity: readonly string[]
  /** By place. */
  readonly services: readonly (readonly string[])[]
  readonly configs: readonly number[]
  /** The identities and services that each selects. */
  readonly policies: readonly (readonly string[])[]
}

const types = ['Dial', 'Bind', 'Dial'] as const
const meet = (a: readonly string[], b: readonly string[]) => a.some((label) => b.includes(label))

/** What the identity sees of a service: nothing, or permissions and config. */
function viewOf({ identity, services, configs, policies }: Model, at: number): string | undefined {
  const grants = (roles: readonly string[]) => meet(roles, identity) && meet(roles, services[at] ?? [])
  const permissions = [...new Set(types.filter((_, place) => grants(policies[place] ?? [])))].sort()
  if (permissions.length === 0) return undefined
  return JSON.stringify([at, services[at], permissions, configs[at]])
}
const listOf = (model: Model): string =>
  JSON.stringify(model.services.map((_, at) => viewOf(model, at)).filter((view) => view !== undefined))

test('every list and every get of a client shows one state of policies, identities, services and configs', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(write, { minLength: 30, maxLength: 30 }), async (writes) => {
      const tag = named({}).name
      const [identityId, type] = [`identity-${tag}`, `type-${tag}`]
      const rolesOf = (roles: readonly string[]) => roles.map((role) => `${tag}${role}`)
      const selected = (roles: readonly string[]) => rolesOf(roles).map((role) => `#${role}`)
      let model: Model = {
        identity: ['a'],
        services: [['a'], ['b'], ['c']],
        configs: [0, 1, 2],
        policies: [['a'], ['b'], ['c']],
      }
      await network.identity.put(identityId, { isAdmin: false, roleAttributes: rolesOf(model.identity) })
      const configTypeId = await policy.create('config-types', { name: type })
      const ids = { policies: [] as string[], services: [] as string[], configs: [] as string[] }
      for (const at of [0, 1, 2]) {
        const data = { value: model.configs[at] }
        const config = await policy.create('configs', { name: `${tag}${at}`, configTypeId, data })
        ids.configs.push(config)
        const roleAttributes = rolesOf(model.services[at] ?? [])
        const service = { name: `${tag}${at}`, encryptionRequired: true, configs: [config], roleAttributes }
        ids.services.push(await policy.create('services', service))
        const roles = selected(model.policies[at] ?? [])
        const granted = { type: types[at], semantic: 'AnyOf', identityRoles: roles, serviceRoles: roles }
        ids.policies.push(await policy.create('service-policies', { name: `${tag}${at}`, ...granted }))
      }
      await policy.engine.catchUp({ signal: AbortSignal.timeout(30_000) })

      const replaced = <T>(list: readonly T[], at: number, by: T) => list.with(at, by)
      async function apply(one: (typeof writes)[number]): Promise<void> {
        switch (one.to) {
          case 'identities':
            model = { ...model, identity: one.roles }
            states.push(model)
            await network.identity.put(identityId, { isAdmin: false, roleAttributes: rolesOf(one.roles) })
            return
          case 'configs':
            model = { ...model, configs: replaced(model.configs, one.at, one.value) }
            states.push(model)
            await policy.update('configs', ids.configs[one.at] ?? '', { data: { value: one.value } })
            return
          case 'services':
            model = { ...model, services: replaced(model.services, one.at, one.roles) }
            states.push(model)
            await policy.update('services', ids.services[one.at] ?? '', {
              roleAttributes: rolesOf(one.roles),
            })
            return
          case 'policies': {
            model = { ...model, policies: replaced(model.policies, one.at, one.roles) }
            states.push(model)
            const roles = selected(one.roles)
            await policy.update('service-policies', ids.policies[one.at] ?? '', {
              identityRoles: roles,
              serviceRoles: roles,
            })
          }
        }
      }
      const states = [model]
      const context = as({ identityId, configTypes: ['all'] })
      interface Row {
        readonly id: string
        readonly roleAttributes: readonly string[] | null
        readonly permissions: readonly string[]
        readonly config: Readonly<Record<string, { readonly value: number }>>
      }
      const shown = ({ id, roleAttributes, permissions, config }: Row) =>
        JSON.stringify([
          ids.services.indexOf(id),
          (roleAttributes ?? []).map((role) => role.slice(tag.length)),
          [...permissions].sort(),
          config[type]?.value,
        ])
      let isWriting = true
      const reads = [0, 0, 0, 0] // of each reader
      const seen = { lists: new Set<string>(), gets: new Set<string>() }
      async function readLists(reader: number): Promise<void> {
        while (isWriting) {
          const rows = (await policy.list('services', {
            context,
            filter: `name contains "${tag}" sort by name`,
          })) as unknown as Row[]
          seen.lists.add(JSON.stringify(rows.map(shown)))
          reads[reader] = (reads[reader] ?? 0) + 1
        }
      }
      async function readOne(reader: number, at: number): Promise<void> {
        while (isWriting) {
          const row = await policy.get('services', ids.services[at] ?? '', context).catch((err: unknown) => {
            if (err instanceof Fault && err.code === 'NOT_FOUND') return undefined
            throw err
          })
          if (row) seen.gets.add(shown(row as unknown as Row))
          reads[reader] = (reads[reader] ?? 0) + 1
        }
      }
      const reading = Promise.all([readLists(0), readLists(1), readOne(2, 0), readOne(3, 1)])
      async function writeAll(): Promise<void> {
        for (const one of writes) {
          await apply(one)
          // each reader ends what this write may have overtaken, and begins the next read
          const before = [...reads]
          await expect
            .poll(() => reads.every((count, i) => count > (before[i] ?? 0)), { interval: 1, timeout: 30_000 })
            .toBe(true)
        }
        isWriting = false
      }
      await Promise.all([writeAll(), reading])

      const [lists, gets] = [
        states.map(listOf),
        states.flatMap((state) => [viewOf(state, 0), viewOf(state, 1)]),
      ]
      expect([...seen.lists].filter((list) => !lists.includes(list))).toEqual([])
      expect([...seen.gets].filter((get) => !gets.includes(get))).toEqual([])
    }),
    { numRuns: 6, endOnFailure: true },
  )
}, 120_000)

test('a list shows no access that only an older identity and a newer policy have together', async () => {
  const { source } = network.identity
  // memory has changes of identity when a read waits for them, and not before
  const lagging = await network.replica({
    identity: {
      ...source,
      async *watch(_after, signal) {
        yield await untilAborted(signal)
      },
    },
  })
  const signal = AbortSignal.timeout(30_000)
  const [identityId, { name }] = [newName(), named({})]
  const [former, next] = [[`${name}former`], [`${name}next`]]
  await network.identity.put(identityId, { isAdmin: false, roleAttributes: former })
  const service = await lagging.create('services', { name, encryptionRequired: true })
  const granted = { name, type: 'Dial', semantic: 'AnyOf', serviceRoles: [`@${service}`] }
  const id = await lagging.create('service-policies', { ...granted, identityRoles: [`#${name}others`] })
  await lagging.engine.catchUp({ signal })
  const shown = () => lagging.list('services', { context: as({ identityId }) })
  expect(await shown()).toEqual([])

  await network.identity.put(identityId, { isAdmin: false, roleAttributes: next })
  await lagging.update('service-policies', id, { identityRoles: former.map((role) => `#${role}`) })
  await lagging.engine.catchUp({ signal }, ['policy'])
  expect(await shown()).toEqual([])

  await lagging.update('service-policies', id, { identityRoles: next.map((role) => `#${role}`) })
  await lagging.engine.catchUp({ signal }, ['policy'])
  expect(await shown()).toMatchObject([{ id: service }])
})
