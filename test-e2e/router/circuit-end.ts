import type { Destination, Forwarder, Parcel, Payload } from './forwarder.js'

/** What an application sends or receives at once. */
export type Piece = Pick<Payload, 'data' | 'headers'>

/** The application at an end of a circuit. */
export interface Peer {
  /** Hands over a piece. The next one follows when it resolves. */
  deliver(piece: Piece): Promise<void> | void
  /** The circuit has ended. */
  ended(reason: string): void
}

/** One end of a circuit, with flow control and retransmission. */
export interface CircuitEnd {
  readonly circuitId: string
  /** Sends a piece. Resolves when there is room for the next one. */
  push(piece: Piece): Promise<void>
  /** The application sends no more, and receives no more: ends the circuit after what was pushed. */
  finish(): Promise<void>
  /** Ends the circuit at once. */
  close(reason: string): void
}

export interface CircuitEndOptions {
  readonly circuitId: string
  readonly address: string
  readonly isIngress: boolean
  readonly peer: Peer
  readonly forwarder: Forwarder
  /** Ends have this long to deliver what is under way when the controller removes their circuit. */
  readonly closeWaitMs: number
  onClosed(): void
}

const WINDOW_BYTES = 1024 * 1024
const RETRANSMIT_MS = 250
const RETRANSMIT_LONGEST_MS = 2000

/** Opens an end and registers it. */
export function openCircuitEnd(options: CircuitEndOptions): CircuitEnd {
  const { circuitId, address, isIngress: isFromIngress, peer, forwarder, closeWaitMs, onClosed } = options
  const unacknowledged: Payload[] = []
  const roomWaiters: (() => void)[] = []
  let unacknowledgedBytes = 0
  let sent = 0
  let received = 0
  let delivered = 0
  let isEndSent = false
  let isClosed = false
  let pushing: Promise<void> = Promise.resolve()
  let delivering: Promise<void> = Promise.resolve()
  let retransmitTimer: NodeJS.Timeout | undefined
  let retransmitMs = RETRANSMIT_MS
  let closeTimer: NodeJS.Timeout | undefined

  function send(piece: Piece, isEnd = false): void {
    const payload: Payload = { kind: 'payload', circuitId, isFromIngress, sequence: sent, isEnd, ...piece }
    sent++
    unacknowledged.push(payload)
    unacknowledgedBytes += piece.data.length
    if (isEnd) isEndSent = true
    forwarder.forward(address, payload)
    armRetransmission()
  }

  function armRetransmission(): void {
    if (isClosed || unacknowledged.length === 0) return
    retransmitTimer ??= setTimeout(() => {
      retransmitTimer = undefined
      retransmitMs = Math.min(2 * retransmitMs, RETRANSMIT_LONGEST_MS)
      retransmit()
    }, retransmitMs)
  }

  function retransmit(): void {
    for (const payload of [...unacknowledged]) forwarder.forward(address, payload)
    armRetransmission()
  }

  function disarmRetransmission(): void {
    clearTimeout(retransmitTimer)
    retransmitTimer = undefined
    retransmitMs = RETRANSMIT_MS
  }

  function acknowledged(sequence: number): void {
    let first = unacknowledged[0]
    if (!first || first.sequence >= sequence) return
    while (first && first.sequence < sequence) {
      unacknowledged.shift()
      unacknowledgedBytes -= first.data.length
      first = unacknowledged[0]
    }
    disarmRetransmission()
    armRetransmission()
    for (const resolve of roomWaiters.splice(0)) resolve()
    if (isEndSent && unacknowledged.length === 0) close('closed')
  }

  const room = (): Promise<void> => new Promise((resolve) => roomWaiters.push(resolve))

  async function pushNext(piece: Piece): Promise<void> {
    while (!isClosed && unacknowledgedBytes >= WINDOW_BYTES) await room()
    if (!isClosed && !isEndSent) send(piece)
  }

  function receive(payload: Payload): void {
    if (payload.sequence < received) acknowledge() // a retransmission
    if (payload.sequence !== received) return // after a gap, the lost ones come again
    received++
    delivering = delivering.then(() => deliver(payload))
  }

  async function deliver(payload: Payload): Promise<void> {
    if (isClosed) return
    if (!payload.isEnd) await peer.deliver(payload)
    delivered = payload.sequence + 1
    acknowledge()
    if (payload.isEnd) close('the other end closed')
  }

  const acknowledge = (): void =>
    forwarder.forward(address, { kind: 'acknowledgement', circuitId, isFromIngress, sequence: delivered })

  function close(reason: string): void {
    if (isClosed) return
    if (!isEndSent) send({ data: Buffer.alloc(0), headers: [] }, true)
    isClosed = true
    disarmRetransmission()
    clearTimeout(closeTimer)
    for (const resolve of roomWaiters.splice(0)) resolve()
    forwarder.unregister(address, destination)
    forwarder.endCircuit(circuitId)
    peer.ended(reason)
    onClosed()
  }

  const destination: Destination = {
    take(parcel: Parcel) {
      if (isClosed || parcel.isFromIngress === isFromIngress) return
      if (parcel.kind === 'payload') receive(parcel)
      else acknowledged(parcel.sequence)
    },
    unrouted() {
      if (!isClosed) closeTimer ??= setTimeout(() => close('the circuit was removed'), closeWaitMs)
    },
    rerouted: retransmit,
  }
  forwarder.register(address, destination)

  return {
    circuitId,
    push(piece) {
      pushing = pushing.then(() => pushNext(piece))
      return pushing
    },
    finish() {
      pushing = pushing.then(() => {
        if (isClosed || isEndSent) return
        send({ data: Buffer.alloc(0), headers: [] }, true)
        closeTimer ??= setTimeout(() => close('closed'), closeWaitMs)
      })
      return pushing
    },
    close,
  }
}
