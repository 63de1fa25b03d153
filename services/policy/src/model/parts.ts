import { fieldHead, ModelEvent } from '@overlay/channel'
import { metrics } from '@overlay/process'
import { yielder } from '@overlay/process/async'
import { PART_BYTES } from '../limits.js'
import type { Events } from './full-state.js'

/** Numbers of the fields that events are: of `DataState`, and of `DataStateChangeSet`. */
const fields = { events: 1, changes: 3 } as const
type EventMember = keyof typeof fields

/** Encodes events as members of a message, in parts, so that the process can do other work in between. */
export async function* partsOf(
  events: Events,
  member: EventMember,
  yieldNow = yielder(),
): AsyncGenerator<Buffer, void> {
  let encoded: Uint8Array[] = []
  let bytes = 0
  const part = (): Buffer => {
    const whole = Buffer.concat(encoded, bytes)
    metrics.routerModelEncoded.inc({ kind: member === 'events' ? 'full' : member }, bytes)
    encoded = []
    bytes = 0
    return whole
  }
  for (const event of events) {
    const pause = yieldNow()
    if (pause) await pause
    if (!event) continue
    const message = ModelEvent.encode(event).finish()
    const head = fieldHead(fields[member], message.length)
    if (bytes > 0 && bytes + head.length + message.length > PART_BYTES) yield part()
    encoded.push(head, message)
    bytes += head.length + message.length
  }
  if (bytes > 0) yield part()
}
