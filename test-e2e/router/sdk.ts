import { once } from 'node:events'
import { Duplex } from 'node:stream'
import { connect } from 'node:tls'
import {
  type Channel,
  contentType,
  decodeUint32,
  encodeBool,
  encodeFrame,
  encodeText,
  encodeUint32,
  HELLO_SEQUENCE,
  type Message,
  openChannel,
  readFirst,
} from '@overlay/channel'
import type { Certificate } from '../client.js'
import type { Posture } from './model-access.js'
import { connIdOf, connType, onConnection, sdkHeader, sdkType } from './sdk-messages.js'
import { untilClosed } from './until-closed.js'

export interface SdkOptions {
  /** Of the router, as its edge router shows it: `tls://host:port`. */
  readonly url: string
  readonly certificate: Certificate
  readonly caPem: string
  readonly apiSessionToken: string
}

/** An application without end-to-end encryption, connected to a router. */
export interface TestSdk extends AsyncDisposable {
  /** Resolves when the terminator is established. */
  host(sessionToken: string, options?: HostOptions): Promise<HostedService>
  /** Dials the service of a session. Throws with the text of the refusal. */
  dial(sessionToken: string): Promise<Connection>
  /** Sends another access token of the same API session. Throws with the text of the refusal. */
  renew(accessToken: string): Promise<void>
  /** Reports the endpoint to the router. */
  report(posture: Posture & { readonly totpToken?: string }): void
  readonly channel: Channel
}

export interface HostOptions {
  readonly cost?: number
  readonly precedence?: number
  readonly instanceId?: string
  readonly instanceSecret?: string
  readonly onConnection?: (connection: Connection) => void
}

/** A hosted service, which echoes unless told otherwise. */
export interface HostedService {
  /** Resolves with the reason when the router has ended it. */
  readonly ended: Promise<string>
  unbind(): void
}

/** A connection to the other application. */
export interface Connection extends Duplex {
  readonly circuitId: string
  /** Of the hosting side: the identity that has dialed, as its router names it. */
  readonly dialer: string | undefined
  /** Resolves with the reason when the router has closed the connection. */
  readonly ended: Promise<string>
}

const REQUEST_MS = 40_000
const NEVER_MS = 2 ** 31 - 1
const PIECE_BYTES = 32 * 1024
const FIN = 1

/** Connects to a router. The channel closes if the router does not accept the API session. */
export async function connectSdk({ url, certificate, caPem, apiSessionToken }: SdkOptions): Promise<TestSdk> {
  const { hostname, port } = new URL(url)
  const socket = connect({
    host: hostname,
    port: Number(port),
    servername: hostname,
    ...certificate,
    ca: caPem,
    ALPNProtocols: ['ziti-edge'],
  })
  await once(socket, 'secureConnect')
  const headers = [[sdkHeader.sessionToken, encodeText(apiSessionToken)]] as const
  socket.write(encodeFrame(contentType.hello, HELLO_SEQUENCE, headers, encodeText('test-sdk')))
  const { decoder } = await readFirst(socket, REQUEST_MS)
  const sinks = new Map<number, (message: Message) => Promise<void> | undefined>()
  const endings = new Map<number, (reason: string) => void>()
  let lastConnId = 0
  const channel = openChannel(socket, {
    decoder,
    heartbeatMs: NEVER_MS,
    onMessage: (message) => sinks.get(connIdOf(message))?.(message),
  })
  void untilClosed(channel).then(() => {
    for (const end of endings.values()) end('the channel has closed')
  })

  function openConnection(connId: number, { headers }: Pick<Message, 'headers'>): Connection {
    const circuitId = headers.get(sdkHeader.circuitId)?.toString() ?? ''
    const dialer = headers.get(sdkHeader.dialerIdentityName)?.toString()
    let sequence = 0
    let isEnded = false
    let resume: (() => void) | undefined
    let end: (reason: string) => void = () => undefined
    const ended = new Promise<string>((resolve) => {
      end = resolve
    })
    const send = (type: number, body: Uint8Array, flags?: number): void =>
      channel.send({
        type,
        headers: onConnection(
          connId,
          [sdkHeader.sequence, encodeUint32(++sequence)],
          [sdkHeader.flags, flags === undefined ? undefined : encodeUint32(flags)],
        ),
        body,
      })
    const duplex = new Duplex({
      write(chunk: Buffer, _encoding, done) {
        for (let at = 0; at < chunk.length && !isEnded; at += PIECE_BYTES)
          send(sdkType.data, chunk.subarray(at, at + PIECE_BYTES))
        channel.drained().then(() => done(), done)
      },
      read() {
        resume?.()
        resume = undefined
      },
      final(done) {
        if (!isEnded) send(sdkType.data, Buffer.alloc(0), FIN)
        done()
      },
      destroy(err, done) {
        sinks.delete(connId)
        endings.delete(connId)
        if (!isEnded) send(sdkType.stateClosed, Buffer.alloc(0))
        resume?.()
        done(err)
      },
    })
    const finish = (reason: string): void => {
      isEnded = true
      endings.delete(connId)
      end(reason)
      duplex.push(null)
      duplex.end()
    }
    sinks.set(connId, ({ type, headers: received, body }) => {
      if (type === sdkType.stateClosed) finish(body.toString())
      if (type !== sdkType.data) return undefined
      const flags = received.get(sdkHeader.flags)
      const hasRoom = body.length === 0 || duplex.push(Buffer.from(body))
      if (flags && decodeUint32(flags) & FIN) duplex.push(null)
      if (hasRoom) return undefined
      return new Promise((resolve) => {
        resume = resolve
      })
    })
    endings.set(connId, finish)
    if (channel.closed.aborted) finish('the channel has closed')
    return Object.assign(duplex, { circuitId, dialer, ended })
  }

  return {
    channel,
    async dial(sessionToken) {
      const connId = ++lastConnId
      const reply = await channel.request(
        {
          type: sdkType.connect,
          headers: onConnection(connId, [sdkHeader.marker, encodeText('marker')]),
          body: encodeText(sessionToken),
        },
        REQUEST_MS,
      )
      if (reply.type !== sdkType.stateConnected) throw new Error(reply.body.toString())
      return openConnection(connId, reply)
    },
    async host(
      sessionToken,
      { cost = 0, precedence = 0, instanceId, instanceSecret, onConnection: accept = echo } = {},
    ) {
      const connId = ++lastConnId
      const text = (value: string | undefined) => (value === undefined ? undefined : encodeText(value))
      let end: (reason: string) => void = () => undefined
      const ended = new Promise<string>((resolve) => {
        end = resolve
      })
      const established = new Promise<void>((resolve) => {
        sinks.set(connId, (message) => {
          if (message.type === sdkType.bindSuccess) resolve()
          if (message.type === sdkType.stateClosed) end(message.body.toString())
          if (message.type === sdkType.connInspectRequest) {
            channel.reply(message, {
              type: sdkType.connInspectResponse,
              headers: onConnection(connId, [sdkHeader.connType, Buffer.from([connType.bind])]),
            })
          }
          if (message.type === sdkType.dial) {
            const id = decodeUint32(message.headers.get(sdkHeader.routerProvidedConnId) ?? encodeUint32(0))
            accept(openConnection(id, message))
            channel.reply(message, {
              type: sdkType.dialSuccess,
              headers: onConnection(connId),
              body: encodeUint32(id),
            })
          }
          return undefined
        })
      })
      const reply = await channel.request(
        {
          type: sdkType.bind,
          headers: onConnection(
            connId,
            [sdkHeader.routerProvidedConnId, encodeBool(true)],
            [sdkHeader.supportsBindSuccess, encodeBool(true)],
            [sdkHeader.supportsInspect, encodeBool(true)],
            [sdkHeader.cost, encodeUint32(cost).subarray(0, 2)],
            [sdkHeader.precedence, Buffer.from([precedence])],
            [sdkHeader.instanceId, text(instanceId)],
            [sdkHeader.instanceSecret, text(instanceSecret)],
          ),
          body: encodeText(sessionToken),
        },
        REQUEST_MS,
      )
      if (reply.type !== sdkType.stateConnected) throw new Error(reply.body.toString())
      const refused = ended.then((reason) => {
        throw new Error(`refused: ${reason}`)
      })
      refused.catch(() => undefined)
      await Promise.race([established, refused])
      return {
        ended,
        unbind: () =>
          channel.send({
            type: sdkType.unbind,
            headers: onConnection(connId),
            body: encodeText(sessionToken),
          }),
      }
    },
    async renew(accessToken) {
      const message = { type: sdkType.updateToken, body: encodeText(accessToken) }
      const reply = await channel.request(message, REQUEST_MS)
      if (reply.type !== sdkType.updateTokenSuccess) throw new Error(reply.body.toString())
    },
    report: (posture) =>
      channel.send({ type: sdkType.postureResponses, body: encodeText(JSON.stringify(posture)) }),
    async [Symbol.asyncDispose]() {
      channel.close('the application ends')
    },
  }
}

/** Returns what the other application sends. */
export const echo = (connection: Connection): void => {
  connection.on('error', () => undefined)
  connection.pipe(connection)
}
