import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { named, networkOfFile } from './network.js'

const { network, policy } = await networkOfFile()
const { engine } = policy
const call = () => ({ signal: AbortSignal.timeout(30_000) })

test('memory loads again after a failover, though an identity is deleted while the rows of policy load', async () => {
  await network.identity.put('young', { isAdmin: false, roleAttributes: ['staff'] })
  const service = await policy.create(
    'services',
    named({ encryptionRequired: true, roleAttributes: ['wiki'] }),
  )
  await policy.create(
    'service-policies',
    named({ type: 'Dial', semantic: 'AnyOf', identityRoles: ['#staff'], serviceRoles: ['#wiki'] }),
  )
  await engine.catchUp(call())
  expect(engine.state.identities.numberOf('young')).toBeDefined()

  let isLoading = false
  using _rows = engine.onRow((kind, id) => {
    isLoading ||= kind === 'services' && id === service
  })
  await network.owner.transaction(undefined, async (tx) => {
    // the load waits for it after it has read the services, which concern the identity
    await tx.query(sql`lock table service_policy in access exclusive mode`)
    await policy.changeLog.db.query(sql`update stream set timeline = gen_random_uuid()`)
    await policy.changeLog.head()
    await expect.poll(() => isLoading, { timeout: 30_000 }).toBe(true)
    await network.identity.remove('young')
    await expect.poll(() => engine.state.identities.numberOf('young'), { timeout: 30_000 }).toBeUndefined()
  })
  await engine.catchUp({ signal: AbortSignal.timeout(30_000) })
  expect(engine.positions().policy?.timeline).toBe((await policy.changeLog.head()).timeline)
  expect(engine.isFresh()).toBe(true)
})
