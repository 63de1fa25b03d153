import { type Caller, clientApi, isUnknown, openCaller, type Reply, type Run } from './caller.js'
import { rules } from './report.js'

/** An identity's program: one API session, used through every gateway. */
export interface Endpoint extends Disposable {
  readonly identityId: string
  readonly apiSessionId: string
  call(gateway: number, method: string, path: string, body?: unknown): Promise<Reply>
  /** Its services through one gateway; undefined: no usable answer. */
  services(gateway: number): Promise<readonly ListedService[] | undefined>
}

export interface ListedService {
  readonly id: string
  readonly config: Readonly<Record<string, { readonly address?: string }>>
}

export const password = 'pw-correct-horse'

/** Logs in through one gateway; the reply instead of an endpoint when that did not succeed. */
export async function openEndpoint(
  run: Run,
  gateway: number,
  identityId: string,
  username: string,
): Promise<Endpoint | Reply> {
  const callers: Caller[] = run.gateways.map((_, at) => openCaller(run, clientApi, at))
  const dispose = (): void => {
    for (const caller of callers) caller[Symbol.dispose]()
  }
  const call = (at: number, method: string, path: string, body?: unknown): Promise<Reply> => {
    const caller = callers[at]
    if (!caller) throw new Error(`no gateway ${at}`)
    return caller.call(method, path, body)
  }
  const body = { username, password, configTypes: ['all'] }
  const reply = await call(gateway, 'POST', '/authenticate?method=password', body)
  if (reply.status !== 200) {
    dispose()
    return reply
  }
  const { token, id } = reply.data as { token: string; id: string }
  for (const caller of callers) caller.use(token)
  return {
    identityId,
    apiSessionId: id,
    call,
    async services(at) {
      const answer = await call(at, 'GET', '/services?limit=500')
      if (answer.status === 200) return answer.data as ListedService[]
      if (!isUnknown(answer))
        run.report.violated(rules.visible, {
          identityId,
          status: answer.status,
          gateway: at,
        })
      return undefined
    },
    [Symbol.dispose]: dispose,
  }
}
