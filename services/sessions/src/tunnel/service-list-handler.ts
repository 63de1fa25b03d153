import { createHash } from 'node:crypto'
import { edgeType, type Message, ServiceList, type TunnelService } from '@overlay/channel'
import type { EntityServiceService, Methods, PolicyServiceService } from '@overlay/rpc'
import type { Handler } from '../channel/handlers.js'
import type { RouterChannel } from '../channel/router-channel.js'
import { AccessRefused } from '../domain/router-access.js'
import { MAX_TOKEN_BYTES } from '../limits.js'
import type { RouterSession, RouterSessions } from './router-sessions.js'
import { routerContext } from './tunnel-sessions.js'

export interface ServiceListDeps {
  readonly routerSessions: Pick<RouterSessions, 'of'>
  readonly policy: Pick<Methods<PolicyServiceService>, 'getHeader'>
  readonly services: Pick<Methods<EntityServiceService>, 'list'>
}

/** Routers ask every few seconds for the services that they may dial or bind. They get the list when it has changed. */
export const serviceListHandler = ({ routerSessions, policy, services }: ServiceListDeps): Handler => ({
  type: edgeType.listServices,
  prepare({ body }: Message, router: RouterChannel) {
    if (body.length > MAX_TOKEN_BYTES) throw new Error(`a token of ${body.length} bytes`)
    return async () => {
      const session = await routerSessions.of(router).catch(notEnabled)
      if (!session) return
      // before the list is read: if it changes in between, the router gets it again
      const { contentKey } = await policy.getHeader(
        { identityId: session.identityId },
        routerContext(session),
      )
      const lastUpdate = tokenFor(contentKey, session)
      if (lastUpdate.equals(body)) return
      const list = ServiceList.encode({ lastUpdate, services: await servicesOf(services, session) }).finish()
      router.channel.send({ type: edgeType.serviceList, body: list })
    }
  },
})

/** wire: a refused request has no answer; the router repeats it. */
function notEnabled(err: unknown): undefined {
  if (!(err instanceof AccessRefused)) throw err
  return undefined
}

const tokenFor = (contentKey: string, { configTypes }: RouterSession): Buffer =>
  createHash('sha256')
    .update(JSON.stringify([contentKey, configTypes]))
    .digest()

interface ServiceRow {
  readonly id: string
  readonly name: string
  readonly permissions: readonly string[]
  readonly encryptionRequired: boolean
  readonly config: object | null
  readonly tags: object
}

async function servicesOf(
  { list }: ServiceListDeps['services'],
  session: RouterSession,
): Promise<TunnelService[]> {
  const found: TunnelService[] = []
  for (let after: Uint8Array = Buffer.alloc(0); ; ) {
    const page = await list(
      {
        kind: 'services',
        query: {
          ...{ filter: 'true limit none', sort: '', limit: '', offset: '', roleFilter: [], roleSemantic: '' },
          after: Buffer.from(after),
        },
        within: undefined,
        perspective: undefined,
      },
      routerContext(session),
    )
    const rows = JSON.parse(page.rows.toString()) as readonly ServiceRow[]
    for (const row of rows) found.push(tunnelService(row))
    if (page.next.length === 0) return found
    after = page.next
  }
}

const tunnelService = ({
  id,
  name,
  permissions,
  encryptionRequired,
  config,
  tags,
}: ServiceRow): TunnelService => ({
  id,
  name,
  permissions: permissions.filter((permission) => permission === 'Dial' || permission === 'Bind'),
  encryption: encryptionRequired,
  config: Buffer.from(JSON.stringify(config ?? {})),
  tags: Buffer.from(JSON.stringify(tags)),
})
