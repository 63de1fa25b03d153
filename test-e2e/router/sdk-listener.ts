import { X509Certificate } from 'node:crypto'
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
import type { RouterIdentity } from './identity.js'
import { type Line, versionOf } from './lines.js'
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
  readonly line: Line
  readonly parts: RouterParts
  onConnected?(sdk: SdkChannel, socket: TLSSocket): void
  onClosed?(sdk: SdkChannel): void
}

const HELLO_MS = 10_000
const VERIFY_MS = 5000

/** Listens at a free loopback port. */
export async function openSdkListener({
  identity,
  line,
  parts,
  onConnected,
  onClosed,
}: SdkListenerOptions): Promise<SdkListener> {
  const sockets = new Set<Socket>() // also those in their handshake, for which the end of the server would wait
  const channels = new Set<SdkChannel>()

  async function accept(socket: TLSSocket): Promise<void> {
    const first = await readFirst(socket, HELLO_MS)
    socket.write(encodeAnswer(identity.id, line))
    const token = first.message.headers.get(sdkHeader.sessionToken)?.toString() ?? ''
    const access = await parts.admission.admit(token, chainOf(socket))
    if (socket.destroyed) throw new Error('closed')
    const sdk = openSdkChannel(socket, first, access, parts)
    channels.add(sdk)
    onConnected?.(sdk, socket)
    void untilClosed(sdk.channel).then(() => {
      channels.delete(sdk)
      onClosed?.(sdk)
    })
    sdk.verify() // what has ended during the verification
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
  const verification = setInterval(() => {
    for (const sdk of channels) sdk.verify() // tokens expire
  }, VERIFY_MS)
  return {
    port,
    channels: () => [...channels],
    async [Symbol.asyncDispose]() {
      clearInterval(verification)
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** The certificates of the peer, its own first. */
function chainOf(socket: TLSSocket): X509Certificate[] {
  const chain: X509Certificate[] = []
  for (let at = socket.getPeerCertificate(true); at?.raw; at = at.issuerCertificate) {
    if (chain.some(({ raw }) => raw.equals(at.raw))) break
    chain.push(new X509Certificate(at.raw))
  }
  return chain
}

const encodeAnswer = (routerId: string, line: Line): Buffer =>
  encodeFrame(
    contentType.result,
    HELLO_SEQUENCE,
    [
      [headerKey.replyFor, encodeInt32(HELLO_SEQUENCE)],
      [headerKey.resultSuccess, encodeBool(true)],
      [headerKey.connectionId, encodeText('1')],
      [headerKey.id, encodeText(routerId)],
      [headerKey.version, encodeVersion(versionOf(line))],
      [sdkHeader.supportsBindSuccess, encodeBool(true)],
    ],
    Buffer.alloc(0),
  )
