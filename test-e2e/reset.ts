import type { Admin } from './admin.js'

/** Deletes what has been created since the network was new. False: it is not as it was, for a change of another kind. */
export type Reset = () => Promise<boolean>

/** In an order in which nothing refers to what is deleted. */
const kinds = [
  'service-policies',
  'edge-router-policies',
  'service-edge-router-policies',
  'terminators',
  'identities',
  'api-sessions',
  'edge-routers',
  'transit-routers',
  'services',
  'posture-checks',
  'configs',
  'config-types',
  'auth-policies',
  'cas',
  'external-jwt-signers',
]

interface Row {
  readonly id: string
  readonly updatedAt: string
}

const PAGE = 500
const AT_ONCE = 8

export async function openReset(admin: Admin): Promise<Reset> {
  const page = (kind: string) => admin.request<readonly Row[]>('GET', `/${kind}?limit=${PAGE}&sort=createdAt`)
  const state = async (): Promise<string> => {
    const lists = await Promise.all(kinds.map(page))
    return JSON.stringify(
      lists.map((rows, at) =>
        rows.map(({ id, updatedAt }) => (kinds[at] === 'api-sessions' ? id : [id, updatedAt])),
      ),
    )
  }
  const original = new Map<string, ReadonlySet<string>>()
  for (const kind of kinds) original.set(kind, new Set((await page(kind)).map(({ id }) => id)))
  const before = await state()

  async function removeAll(kind: string): Promise<void> {
    for (;;) {
      const rows = (await page(kind)).filter(({ id }) => !original.get(kind)?.has(id))
      const statuses = new Set<number>()
      const ids = rows.map(({ id }) => id).values()
      await Promise.all(
        Array.from({ length: AT_ONCE }, async () => {
          for (const id of ids) statuses.add((await admin.call('DELETE', `/${kind}/${id}`)).status)
        }),
      )
      if (!statuses.has(200)) return
    }
  }
  return async () => {
    for (const kind of kinds) await removeAll(kind)
    return (await state()) === before
  }
}
