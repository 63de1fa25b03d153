import { setTimeout as delay } from 'node:timers/promises'
import { Fault, type Methods, ownContext, type PkiServiceService } from '@overlay/rpc'

/** The key and the certificate of a TLS server, leaf first. */
export interface ServerKey {
  readonly keyPem: string
  readonly chainPem: string
}

type Pki = Pick<Methods<PkiServiceService>, 'getServerCertificate'>

interface Log {
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
}

const LIMIT_MS = 10_000
const PAUSE_MS = 250
const RENEW_MS = 60_000

/** Waits for pki: the process cannot serve without its key. */
export async function serverKey(pki: Pki, log: Log): Promise<ServerKey> {
  for (let isLogged = false; ; isLogged = true) {
    try {
      return await fetchKey(pki)
    } catch (err) {
      if (!(err instanceof Fault)) throw err
      if (!isLogged) log.warn({ err }, 'no server certificate yet, waiting for pki')
      await delay(PAUSE_MS)
    }
  }
}

/** Polls pki for a new certificate: certificates expire, and keys are replaced. */
export function renewServerKey(
  pki: Pki,
  log: Log,
  first: ServerKey,
  renew: (key: ServerKey) => void,
): Disposable {
  let current = first
  const poll = async (): Promise<void> => {
    try {
      const key = await fetchKey(pki)
      if (key.chainPem === current.chainPem) return
      renew(key)
      current = key
      log.info({}, 'server certificate renewed')
    } catch (err) {
      log.warn({ err }, 'server certificate could not be looked up, going on with the last one')
    }
  }
  const timer = setInterval(() => void poll(), RENEW_MS)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

const fetchKey = (pki: Pki): Promise<ServerKey> =>
  pki.getServerCertificate({}, ownContext(AbortSignal.timeout(LIMIT_MS)))
