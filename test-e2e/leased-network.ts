import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { inject } from 'vitest'
import { logInAsAdmin } from './admin.js'
import { missing, type Network, networkAdmin } from './network.js'

declare module 'vitest' {
  interface ProvidedContext {
    /** The directory of the files of the image, in runs against the manifests. */
    image: string
  }
}

/** What a program that lends networks is asked for. */
export interface LeaseRequest {
  /** Of pods. Undefined: a network of processes. */
  readonly image?: string
}

/** What a file of tests gets to know of a network. */
export interface NetworkFacts
  extends Pick<Network, 'address' | 'gateways' | 'ctrlAddress' | 'controllers' | 'caPem' | 'home'> {
  /** Absent for pods. */
  readonly bus?: Pick<Network['bus'], 'url' | 'login'>
  readonly databaseUrl?: string
  readonly pids?: readonly (readonly [name: string, pid: number])[]
}

/** A network that other files use before and after this one. */
export async function leaseNetwork(): Promise<Network> {
  const socket = connect(process.env.OVERLAY_TEST_NETWORKS ?? '')
  const lines = createInterface({ input: socket })
  const ended = once(lines, 'close').then((): never => {
    throw new Error('no network was lent: the end of the run says why')
  })
  const request: LeaseRequest = process.env.OVERLAY_TEST_MANIFESTS ? { image: inject('image') } : {}
  socket.write(`${JSON.stringify(request)}\n`)
  const [line] = await Promise.race([once(lines, 'line'), ended])
  ended.catch(() => undefined) // this file ends it
  const facts = JSON.parse(String(line)) as NetworkFacts
  const { address, caPem } = facts
  const stop = () => missing('a stop: other files share it')
  return {
    ...facts,
    get bus() {
      return facts.bus ? { ...facts.bus, stop, start: stop, [Symbol.asyncDispose]: stop } : missing('a bus')
    },
    get databaseUrl() {
      return facts.databaseUrl ?? missing('a database that the test reads')
    },
    get processes() {
      return new Map(
        (facts.pids ?? missing('known processes')).map(([name, pid]) => [name, { pid: () => pid, stop }]),
      )
    },
    stop,
    admin: (...addresses) =>
      logInAsAdmin({ addresses: addresses.length > 0 ? addresses : [address], caPem }, networkAdmin),
    async [Symbol.asyncDispose]() {
      socket.destroy()
    },
  }
}
