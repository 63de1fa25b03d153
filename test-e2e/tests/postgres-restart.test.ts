import { testPostgres } from '@overlay/launcher/testing'
import { expect, test } from 'vitest'
import type { Admin } from '../admin.js'
import type { Member } from '../member.js'
import { startNetwork } from '../network.js'

interface Load {
  /** Ids that were acknowledged, by kind. */
  readonly created: { readonly kind: string; readonly id: string }[]
  /** Statuses with error codes of failed requests. */
  readonly refusals: Set<string>
  stop(): Promise<void>
}

/** Creates and reads continuously until it is stopped. */
function startLoad(admin: Admin, member: Member): Load {
  const created: Load['created'][number][] = []
  const refusals = new Set<string>()
  let running = true
  let count = 0
  const call = async (client: Admin | Member, method: string, path: string, body?: unknown) => {
    const { status, body: answer } = await client.call(method, path, body)
    if (status < 300) return answer.data
    refusals.add(`${status} ${answer.error?.code}`)
  }
  const again = async (work: () => Promise<unknown>): Promise<void> => {
    while (running) await work()
  }
  const creating = (kind: string, body: object) =>
    again(async () => {
      const data = await call(admin, 'POST', `/${kind}`, { name: `${kind} ${++count}`, ...body })
      if (data) created.push({ kind, id: (data as { id: string }).id })
    })
  const loops = [
    creating('services', { encryptionRequired: true }),
    creating('identities', { type: 'Device', isAdmin: false }),
    creating('identities', { type: 'Device', isAdmin: false, enrollment: { ott: true } }),
    creating('edge-routers', {}),
    again(() => call(member, 'GET', '/services')),
    again(() => call(member, 'GET', '/current-identity')),
  ]
  return {
    created,
    refusals,
    async stop() {
      running = false
      await Promise.all(loops)
    },
  }
}

test.each(['SIGINT', 'SIGKILL'] as const)(
  'when Postgres ends by %s all is there again after its return, and meanwhile a 503 says so',
  async (signal) => {
    await using postgres = await testPostgres({ password: 'as on disk' })
    await using network = await startNetwork({ env: { DATABASE_URL: postgres.url } })
    const admin = await network.admin()
    const member = await admin.enroll({ name: 'alice' })
    const load = startLoad(admin, member)
    await expect.poll(() => load.created.length).toBeGreaterThan(20)

    await postgres.stop(signal)
    const probe = await admin.call('POST', '/services', { name: 'meanwhile', encryptionRequired: true })
    expect([probe.status, probe.body.error?.code]).toEqual([503, 'UNAVAILABLE'])
    await postgres.start()
    const before = load.created.length
    const kinds = () => new Set(load.created.slice(before).map(({ kind }) => kind)).size
    await expect.poll(kinds).toBe(3)
    const logsIn = () => network.admin().then(() => true, String)
    await expect.poll(logsIn).toBe(true)
    await load.stop()

    expect([...load.refusals].filter((refusal) => !/^503 (UNAVAILABLE|TIMEOUT)$/.test(refusal))).toEqual([])
    for (const { kind, id } of load.created)
      expect((await admin.call('GET', `/${kind}/${id}`)).status).toBe(200)
    expect(await member.services()).toEqual([])
  },
)
