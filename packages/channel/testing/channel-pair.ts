import type { TLSSocket } from 'node:tls'
import { type Channel, type ChannelOptions, openChannel } from '../src/index.js'
import { type Received, received } from './received.js'
import { tlsPair } from './tls-pair.js'

export interface ChannelPair extends AsyncDisposable {
  /** With the options given. */
  readonly channel: Channel
  readonly peer: Channel
  readonly socket: TLSSocket
  readonly peerSocket: TLSSocket
  /** What the peer received. */
  readonly received: Received
}

export async function channelPair(
  options: Partial<ChannelOptions> = {},
  peerOptions: Partial<ChannelOptions> = {},
): Promise<ChannelPair> {
  const { server, client, ...pair } = await tlsPair()
  const messages = received()
  const channel = openChannel(server, { onMessage: () => {}, ...options })
  const peer = openChannel(client, { onMessage: messages.onMessage, ...peerOptions })
  return {
    channel,
    peer,
    socket: server,
    peerSocket: client,
    received: messages,
    async [Symbol.asyncDispose]() {
      channel.close('end of the test')
      peer.close('end of the test')
      await pair[Symbol.asyncDispose]()
    },
  }
}

/** The reason why a channel has closed, once it has. */
export const closing = ({ closed }: Channel): Promise<Error> =>
  new Promise((resolve) => {
    if (closed.aborted) resolve(closed.reason)
    else closed.addEventListener('abort', () => resolve(closed.reason))
  })
