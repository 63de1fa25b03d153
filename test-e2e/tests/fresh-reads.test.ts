import { expect, test } from 'vitest'
import { startNetwork } from '../network.js'

test('no read is stale, though every request goes to another gateway: bus up, stopped, and back', async () => {
  await using network = await startNetwork({ gateways: 2, policies: 2 })
  const admin = await network.admin(...network.gateways)
  const step = { up: () => undefined, stopped: () => network.bus.stop(), back: () => network.bus.start() }
  for (const [bus, turn] of Object.entries(step)) {
    await turn()
    for (let round = 0; round < 10; round++) {
      const at = `${bus} ${round}`
      const role = `role-${bus}-${round}`

      // rows, from their owner
      const service = await admin.create('services', {
        name: at,
        encryptionRequired: true,
        roleAttributes: [role],
      })
      expect(await admin.ask('GET', `/services/${service}`)).toMatchObject({ name: at })
      await admin.ask('PATCH', `/services/${service}`, { name: `${at} renamed` })
      expect(await names(`/services?filter=id="${service}"`)).toEqual([`${at} renamed`])

      // what policy knows of another owner's rows
      const identity = await admin.create('identities', {
        name: at,
        type: 'Device',
        isAdmin: false,
        roleAttributes: [role],
      })
      const policy = await admin.create('service-policies', {
        name: at,
        type: 'Dial',
        semantic: 'AllOf',
        identityRoles: [`#${role}`],
        serviceRoles: [`#${role}`],
      })
      expect(await names(`/identities/${identity}/services`)).toEqual([`${at} renamed`])
      expect(await names(`/service-policies/${policy}/identities`)).toEqual([at])
      await admin.ask('PATCH', `/identities/${identity}`, { roleAttributes: [] })
      expect(await names(`/identities/${identity}/services`)).toEqual([])

      // an odd number of requests in each round: what one gateway wrote, the other writes in the next
      await admin.ask('DELETE', `/services/${service}`)
      expect((await admin.call('GET', `/services/${service}`)).status).toBe(404)
    }
  }

  async function names(path: string): Promise<string[]> {
    const rows = await admin.ask<{ name: string }[]>('GET', path)
    return rows.map(({ name }) => name)
  }
})
