import { type Api, clientRoot, forEach, logIn, openApi } from './api.js'
import { client } from './scenario.js'
import { names, password } from './topology.js'
import type { Side } from './turns.js'

/**
 * Opens sessions of identities that have a password, about `count` of them, each identity for the same number of
 * services. Returns how many.
 */
export async function openSessions(
  { bench: { url, seeded } }: Side,
  count: number,
  perIdentity: number,
  servicesOf: (api: Api) => Promise<readonly string[]>,
): Promise<number> {
  const holders = Math.min(seeded.topology.withPassword, Math.ceil(count / Math.max(1, perIdentity)))
  using anonymous = openApi(url, clientRoot, 8)
  let opened = 0
  await forEach(holders, 8, async (at) => {
    const token = await logIn(anonymous, names.username(at), password, client)
    using api = openApi(url, clientRoot, 1)
    api.use(token)
    for (const serviceId of await servicesOf(api)) {
      await api.request('POST', '/sessions', { serviceId, type: 'Dial' })
      opened++
    }
  })
  return opened
}
