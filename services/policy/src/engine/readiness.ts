import { randomUUID } from 'node:crypto'
import type { Bus } from '@overlay/store/change-log'
import { FRESH_ANSWER_MS, STUCK_MS } from '../limits.js'
import type { Engine } from './engine.js'

/**
 * More than between two signs of a stream at rest, and so much less than STUCK_MS that replicas which lose their owners
 * together do not answer each other: otherwise all of them would leave service.
 */
const FRESH_MS = 8000
const QUESTION = 'overlay.policy.fresh-question'
const ANSWER = 'overlay.policy.fresh-answer'

interface Sender {
  readonly replica: string
}

/** Decides with the other replicas whether this one should serve. For each probe. */
export function openReadiness(
  bus: Pick<Bus, 'publish' | 'subscribe'>,
  engine: Pick<Engine, 'ageMs' | 'isLoaded'>,
  now: () => number = () => performance.now(),
) {
  const own: Sender = { replica: randomUUID() }
  let freshAt = now()
  let answeredAt = Number.NEGATIVE_INFINITY

  function isStuck(): boolean {
    freshAt = Math.max(freshAt, now() - engine.ageMs()) // without a position the age is infinite
    return now() - freshAt > STUCK_MS
  }
  const ofOthers = (subject: string, handle: () => void): Disposable =>
    bus.subscribe(subject, (message) => {
      if ((message as Sender).replica !== own.replica) handle()
    })
  const questions = ofOthers(QUESTION, () => {
    if (engine.isLoaded() && engine.ageMs() <= FRESH_MS) bus.publish(ANSWER, own)
  })
  // an answer to an earlier question of another replica does not say that a replica can replace this one later
  const answers = ofOthers(ANSWER, () => {
    if (isStuck()) answeredAt = now()
  })
  return {
    /**
     * 'ok', or 'replaceable': memory has not been fresh for a while, so that authorizations answer 503, and another replica
     * has reported that its memory is. Where no other answers, this one stays in service: reads still answer from memory.
     */
    state(): 'ok' | 'replaceable' {
      if (!isStuck()) return 'ok'
      bus.publish(QUESTION, own)
      return now() - answeredAt < FRESH_ANSWER_MS ? 'replaceable' : 'ok'
    },
    [Symbol.dispose]() {
      questions[Symbol.dispose]()
      answers[Symbol.dispose]()
    },
  }
}
