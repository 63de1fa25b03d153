import { expect, test } from 'vitest'
import { startNetwork } from '../network.js'

test('no read is stale if requests alternate between gateways: with the bus up, stopped, and back', async () => {
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
      expect(await admin.request('GET', `/services/${service}`)).toMatchObject({ name: at })
      await admin.request('PATCH', `/services/${service}`, { name: `${at} renamed` })
      expect(await names(`/services?filter=id="${service}"`)).toEqual([`${at} renamed`])

      // rows of another owner, as policy follows them
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
      await admin.request('PATCH', `/identities/${identity}`, { roleAttributes: [] })
      expect(await names(`/identities/${identity}/services`)).toEqual([])

      // an odd number of requests per round, so that the gateways swap their parts
      await admin.request('DELETE', `/services/${service}`)
      expect((await admin.call('GET', `/services/${service}`)).status).toBe(404)
    }
  }

  async function names(path: string): Promise<string[]> {
    const rows = await admin.request<{ name: string }[]>('GET', path)
    return rows.map(({ name }) => name)
  }
})
