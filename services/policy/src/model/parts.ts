import { ModelEvent } from '@overlay/channel'
import { metrics } from '@overlay/process'
import { yielder } from '@overlay/process/async'
import { PART_BYTES } from '../limits.js'
import type { Events } from './full-state.js'

/** The member of its message that an event is: of `DataState`, or of `DataStateChangeSet`. */
const tags = { events: 0x0a, changes: 0x1a } as const
export type EventMember = keyof typeof tags

/** Encodes events as members of a message, in parts, so that the process can do other work in between. */
export async function* partsOf(
  events: Events,
  member: EventMember,
  breathe = yielder(),
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
    const pause = breathe()
    if (pause) await pause
    if (!event) continue
    const message = ModelEvent.encode(event).finish()
    const head = headOf(tags[member], message.length)
    if (bytes > 0 && bytes + head.length + message.length > PART_BYTES) yield part()
    encoded.push(head, message)
    bytes += head.length + message.length
  }
  if (bytes > 0) yield part()
}

function headOf(tag: number, length: number): Uint8Array {
  const head = [tag]
  let rest = length
  for (; rest > 0x7f; rest >>>= 7) head.push((rest & 0x7f) | 0x80)
  return Uint8Array.from([...head, rest])
}
