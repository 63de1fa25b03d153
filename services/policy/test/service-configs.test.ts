import { expect, test } from 'vitest'
import { admin, as, networkOfFile } from './network.js'

const { network, policy } = await networkOfFile()

let count = 0
/** Alice dials a service that has a config; two more configs of the same type are there for her. */
async function alone() {
  const n = ++count
  const alice = `alice${n}`
  const position = await network.identity.put(alice, { isAdmin: false })
  await policy.changes.reach({ schema: 'identity', position }, admin) // writes are refused while it is loaded
  const type = await policy.create('config-types', { name: `type${n}` })
  const config = (name: string) =>
    policy.create('configs', { name: `${name}${n}`, configTypeId: type, data: { of: name } })
  const [shared, own, other] = [await config('shared'), await config('own'), await config('other')]
  const service = await policy.create('services', {
    name: `service${n}`,
    encryptionRequired: true,
    configs: [shared],
  })
  await policy.create('service-policies', {
    name: `policy${n}`,
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: [`@${alice}`],
    serviceRoles: [`@${service}`],
  })
  const put = (configId: string, serviceId = service) =>
    policy.policy.putServiceConfigs({ identityId: alice, configs: [{ serviceId, configId }] }, admin)
  const remove = (...configs: { serviceId: string; configId: string }[]) =>
    policy.policy.removeServiceConfigs({ identityId: alice, configs }, admin)
  const listed = async () =>
    (await policy.policy.listServiceConfigs({ identityId: alice }, admin)).json.map((json) =>
      JSON.parse(Buffer.from(json).toString()),
    )
  const shown = async () => {
    await policy.engine.catchUp({ signal: AbortSignal.timeout(30_000) })
    const context = as({ identityId: alice, configTypes: ['all'] })
    return (await policy.list('services', { context }))[0]?.config
  }
  return { n, alice, type: `type${n}`, shared, own, other, service, put, remove, listed, shown }
}

test("an identity's own config stands in place of the service's of the same type; the next one replaces it", async () => {
  const { n, type, own, other, service, put, listed, shown } = await alone()
  expect(await shown()).toEqual({ [type]: { of: 'shared' } })
  await put(own)
  expect(await shown()).toEqual({ [type]: { of: 'own' } })
  await put(other)
  expect(await shown()).toEqual({ [type]: { of: 'other' } })
  expect(await listed()).toMatchObject([
    {
      serviceId: service,
      service: { entity: 'services', id: service, name: `service${n}` },
      configId: other,
      config: { entity: 'configs', id: other, name: `other${n}` },
    },
  ])
})

test('removing a config removes any config of the same type, and may be repeated', async () => {
  const { type, own, other, service, put, remove, listed, shown } = await alone()
  await put(own)
  await remove({ serviceId: service, configId: other })
  await remove({ serviceId: service, configId: other })
  expect([await listed(), await shown()]).toEqual([[], { [type]: { of: 'shared' } }])
})

test('an empty list of configs removes none', async () => {
  const { own, put, remove, listed } = await alone()
  await put(own)
  await remove()
  expect(await listed()).toHaveLength(1)
})

test('a config for a service that does not exist is not listed', async () => {
  const { own, put, listed } = await alone()
  await put(own, 'nothing')
  expect(await listed()).toEqual([])
})

test("an identity's own config moves its service-updates time", async () => {
  const { alice, own, put } = await alone()
  await policy.engine.catchUp({ signal: AbortSignal.timeout(30_000) })
  const before = policy.engine.lastChangeAtMs(alice)
  const { position } = await put(own)
  await policy.engine.waitFor(position ? { policy: position } : {}, { signal: AbortSignal.timeout(30_000) })
  expect(policy.engine.lastChangeAtMs(alice)).toBeGreaterThan(before)
})

test('identity and config must exist; a config in use cannot be deleted', async () => {
  const { alice, own, service, put } = await alone()
  await expect(put('nothing')).rejects.toMatchObject({ detail: 'config with id nothing not found' })
  await expect(policy.policy.listServiceConfigs({ identityId: 'nobody' }, admin)).rejects.toMatchObject({
    detail: 'identity with id nobody not found',
  })
  await put(own)
  await expect(policy.remove('configs', own)).rejects.toMatchObject({
    code: 'CAN_NOT_DELETE_REFERENCED_ENTITY',
    detail: `config is in use by identity ${alice} for service ${service}`,
  })
})

test("an identity's own config is deleted with its service and with its identity", async () => {
  const first = await alone()
  await first.put(first.own)
  await policy.remove('services', first.service)
  await policy.remove('configs', first.own)

  const second = await alone()
  await second.put(second.own)
  await network.identity.remove(second.alice)
  await expect
    .poll(() =>
      policy.remove('configs', second.own).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true)
})
