import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { type Channel, openChannel } from './channel.js'
import { encodeFrame, frameDecoder } from './frame.js'

test('handlers of messages that came with the hello may use the channel', async () => {
  const decoder = frameDecoder()
  decoder.push(encodeFrame(1000, 1, [], Buffer.alloc(0)))
  const channel: Channel = openChannel(new PassThrough(), {
    decoder,
    onMessage: () => channel.close('handled'),
  })
  await expect.poll(() => channel.closed.reason).toMatchObject({ message: 'handled' })
})
