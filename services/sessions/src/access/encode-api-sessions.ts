import { ApiSessionAdded, type RouterApiSession } from '@overlay/channel'
import { isUuid } from '@overlay/model'
import { cuidAt, timeOfUuid } from '@overlay/store/kind-store'
import { type ApiSession, fingerprintsAt } from '../domain/api-session.js'

/** API sessions as routers get them, each encoded once for the full states of all routers. */
export type Encodings = Map<ApiSession, Uint8Array>

/** wire: the original sends at most 100 sessions in one message of a full state. */
export const SESSIONS_PER_MESSAGE = 100

/** wire: routers compare ids as texts: the greater one is newer. The UUID of an API session begins with its time. */
export const routerIdOf = (id: string): string =>
  isUuid(id) ? cuidAt(timeOfUuid(id) * 1000, id.replaceAll('-', '').slice(-13)) : id

export const routerApiSession = (session: ApiSession): RouterApiSession => ({
  token: session.token,
  id: routerIdOf(session.id),
  certFingerprints: fingerprintsAt(session, Date.now()),
  identityId: '',
})

export const encodeAdded = (isFullState: boolean, apiSessions: RouterApiSession[]): Uint8Array =>
  ApiSessionAdded.encode({ isFullState, apiSessions }).finish()

/** The body of a message of a full state: of protobuf messages that follow each other, the lists are joined. */
export const joinEncodings = (encodings: readonly Uint8Array[]): Uint8Array =>
  Buffer.concat([isFullState, ...encodings])

const isFullState = encodeAdded(true, [])

export function encodingOf(encodings: Encodings, session: ApiSession): Uint8Array {
  const encoding = encodings.get(session) ?? encodeAdded(false, [routerApiSession(session)])
  encodings.set(session, encoding)
  return encoding
}
