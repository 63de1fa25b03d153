import { openAdministrator } from './administrator.js'
import { isSuccess, type Run } from './caller.js'
import type { Random } from './random.js'

/** Rows that several clients change and delete at once, without a model: nothing may break, and all must fit at rest. */
export interface Contender extends Disposable {
  step(): Promise<void>
}

/** Ids by kind, shared by all contenders of a run. */
export type Shared = Record<
  | 'identities'
  | 'services'
  | 'service-policies'
  | 'edge-router-policies'
  | 'service-edge-router-policies'
  | 'configs'
  | 'edge-routers',
  string[]
>

export const emptyShared = (): Shared => ({
  identities: [],
  services: [],
  'service-policies': [],
  'edge-router-policies': [],
  'service-edge-router-policies': [],
  configs: [],
  'edge-routers': [],
})

const MOST = 12 // of a kind; above it, one is deleted

export async function openContender(
  run: Run,
  prefix: string,
  shared: Shared,
  random: Random,
): Promise<Contender> {
  const admin = await openAdministrator(run)
  let count = 0

  const attributes = (): string[] => ['sa', 'sb', 'sc'].filter(() => random.coin(0.5))
  const roles = (kind: keyof Shared): string[] => {
    if (random.coin(0.4)) return ['#sa']
    const ids = [random.pick(shared[kind]), random.pick(shared[kind])].filter((id) => id !== undefined)
    return [...new Set(ids)].map((id) => `@${id}`)
  }
  const configs = (): string[] => [random.pick(shared.configs)].filter((id) => id !== undefined)
  const semantic = 'AnyOf'

  const bodies: Record<keyof Shared, () => object> = {
    identities: () => ({ type: 'Device', isAdmin: false, roleAttributes: attributes() }),
    services: () => ({ encryptionRequired: true, roleAttributes: attributes(), configs: configs() }),
    'service-policies': () => ({
      type: 'Dial',
      semantic,
      identityRoles: roles('identities'),
      serviceRoles: roles('services'),
    }),
    'edge-router-policies': () => ({
      semantic,
      identityRoles: roles('identities'),
      edgeRouterRoles: roles('edge-routers'),
    }),
    'service-edge-router-policies': () => ({
      semantic,
      serviceRoles: roles('services'),
      edgeRouterRoles: roles('edge-routers'),
    }),
    configs: () => ({
      configTypeId: run.hostConfigType,
      data: { protocol: 'tcp', address: 'localhost', port: 80 },
    }),
    'edge-routers': () => ({ isTunnelerEnabled: random.coin(0.7), roleAttributes: attributes() }),
  }
  const patches: Partial<Record<keyof Shared, () => object>> = {
    identities: () => ({ roleAttributes: attributes() }),
    services: () => (random.coin(0.5) ? { roleAttributes: attributes() } : { configs: configs() }),
    'service-policies': () => ({ identityRoles: roles('identities'), serviceRoles: roles('services') }),
    'edge-routers': () => ({ isTunnelerEnabled: random.coin(0.5) }),
  }
  const kinds = Object.keys(bodies) as (keyof Shared)[]

  return {
    async step() {
      const kind = random.pick(kinds) ?? 'identities'
      const gateway = random.int(run.gateways.length)
      const ids = shared[kind]
      const patch = patches[kind]
      const id = ids[random.int(ids.length)]
      if (ids.length > MOST || (ids.length > 3 && random.coin(0.3))) {
        ids.splice(ids.indexOf(id ?? ''), 1)
        await admin.call(gateway, 'DELETE', `/${kind}/${id}`)
      } else if (id !== undefined && patch && random.coin(0.5)) {
        await admin.call(gateway, 'PATCH', `/${kind}/${id}`, patch())
      } else {
        const body = { name: `${prefix}-${count++}`, ...bodies[kind]() }
        const reply = await admin.call(gateway, 'POST', `/${kind}`, body)
        if (isSuccess(reply)) ids.push((reply.data as { id: string }).id)
      }
    },
    [Symbol.dispose]: () => admin[Symbol.dispose](),
  }
}
