import { randomUUID } from 'node:crypto'
import { openAlarm } from '@overlay/process/async'
import { Fault, type Methods, type NetworkEvent, type SessionsServiceService } from '@overlay/rpc'
import { type Bus, EVENT_SUBJECT, type FabricEvent } from '@overlay/store/change-log'
import { MAX_WAITING_EVENTS } from '../limits.js'

const SIGN_OF_LIFE_MS = 1000

/** Streams the events of all services, from the bus. The first message is sent once the bus has the subscription. */
export const watchEvents = ({
  bus,
}: {
  readonly bus: Pick<Bus, 'publish' | 'subscribe' | 'onChange'>
}): Methods<SessionsServiceService>['watchEvents'] =>
  async function* (_request, { signal }) {
    const mark = `${EVENT_SUBJECT}.mark.${randomUUID()}`
    const moved = openAlarm()
    let waiting: NetworkEvent[] = []
    let isSubscribed = false
    using _events = bus.subscribe(`${EVENT_SUBJECT}.>`, (message, subject) => {
      if (subject === mark) isSubscribed = true
      else if (!subject.startsWith(`${EVENT_SUBJECT}.mark.`) && waiting.length <= MAX_WAITING_EVENTS)
        waiting.push(networkEvent(message as FabricEvent))
      moved.ring()
    })
    // the bus handles what one connection sends in order: the mark returns when the subscription is in effect
    const sendMark = (): void => bus.publish(mark, {})
    using _connected = bus.onChange((isConnected) => {
      if (isConnected) sendMark()
    })
    sendMark()

    while (!signal.aborted) {
      const next = moved.sleep(signal, SIGN_OF_LIFE_MS)
      if (waiting.length > MAX_WAITING_EVENTS)
        throw new Fault('UNAVAILABLE', 'events arrive faster than they are read')
      if (isSubscribed) {
        const events = waiting
        waiting = []
        yield { events }
      }
      await next
    }
  }

const networkEvent = (event: FabricEvent): NetworkEvent => ({
  namespace: event.namespace,
  type: event.event_type ?? '',
  json: Buffer.from(JSON.stringify(event)),
})
