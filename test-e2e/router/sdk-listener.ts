import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import {
  contentType,
  encodeBool,
  encodeFrame,
  encodeInt32,
  encodeText,
  encodeVersion,
  HELLO_SEQUENCE,
  headerKey,
  readFirst,
} from '@overlay/channel'
import type { ApiSessions } from './api-sessions.js'
import { VERSION } from './controllers.js'
import type { RouterIdentity } from './identity.js'
import { openSdkChannel, type RouterParts, type SdkChannel } from './sdk-channel.js'
import { sdkHeader } from './sdk-messages.js'
import { untilClosed } from './until-closed.js'

/** Where SDKs connect to a test router. */
export interface SdkListener extends AsyncDisposable {
  readonly port: number
  /** Channels of SDKs. */
  channels(): SdkChannel[]
}

export interface SdkListenerOptions {
  readonly identity: RouterIdentity
  readonly apiSessions: ApiSessions
  readonly parts: RouterParts
}

const HELLO_MS = 10_000
const API_SESSION_MS = 5000

/** Listens at a free loopback port. */
export async function openSdkListener({
  identity,
  apiSessions,
  parts,
}: SdkListenerOptions): Promise<SdkListener> {
  const sockets = new Set<Socket>() // also those in their handshake, for which the end of the server would wait
  const channels = new Set<SdkChannel>()

  async function accept(socket: TLSSocket): Promise<void> {
    const first = await readFirst(socket, HELLO_MS)
    socket.write(encodeAnswer(identity.id))
    const token = first.message.headers.get(sdkHeader.sessionToken)?.toString() ?? ''
    const session = await apiSessions.waitFor(token, API_SESSION_MS)
    const fingerprint = fingerprintOf(socket.getPeerCertificate().raw)
    if (!session?.certFingerprints.includes(fingerprint) || socket.destroyed)
      throw new Error('no API session')
    const access = { apiSessionToken: token, fingerprints: [fingerprint] }
    const sdk = openSdkChannel(socket, first, access, parts)
    channels.add(sdk)
    void untilClosed(sdk.channel).then(() => channels.delete(sdk))
  }

  const server = createServer(
    {
      ...identity.server,
      ca: identity.caPem,
      requestCert: true,
      rejectUnauthorized: false, // the fingerprint decides
      ALPNProtocols: ['ziti-edge'],
    },
    (socket) => {
      socket.on('error', () => socket.destroy())
      accept(socket).catch(() => void socket.destroy())
    },
  )
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  return {
    port,
    channels: () => [...channels],
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** SHA-1 of a certificate, hex. */
export const fingerprintOf = (der: Buffer): string => createHash('sha1').update(der).digest('hex')

const encodeAnswer = (routerId: string): Buffer =>
  encodeFrame(
    contentType.result,
    HELLO_SEQUENCE,
    [
      [headerKey.replyFor, encodeInt32(HELLO_SEQUENCE)],
      [headerKey.resultSuccess, encodeBool(true)],
      [headerKey.connectionId, encodeText('1')],
      [headerKey.id, encodeText(routerId)],
      [headerKey.version, encodeVersion(VERSION)],
      [sdkHeader.supportsBindSuccess, encodeBool(true)],
    ],
    Buffer.alloc(0),
  )
