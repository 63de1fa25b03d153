import { ApiSessionAdded, type RouterApiSession } from '@overlay/channel'
import { isUuid } from '@overlay/model'
import { cuidAt, timeOfUuid } from '@overlay/store/kind-store'
import { type ApiSession, fingerprintsAt } from '../domain/api-session.js'
import type { RouterFeatures } from '../domain/router-features.js'

/** What decides how a router gets API sessions. */
export type PushFeatures = Pick<RouterFeatures, 'verifiesTokens'>

/** wire: routers with the data model verify access tokens themselves. */
export const isPushedTo = ({ tokenId }: ApiSession, { verifiesTokens }: PushFeatures): boolean =>
  !verifiesTokens || tokenId === undefined

/** wire: the original sends at most 100 sessions in one message of a full state. */
export const SESSIONS_PER_MESSAGE = 100

/** wire: routers compare ids as texts: the greater one is newer. The UUID of an API session begins with its time. */
export const routerIdOf = (id: string): string =>
  isUuid(id) ? cuidAt(timeOfUuid(id) * 1000, id.replaceAll('-', '').slice(-13)) : id

export const routerApiSession = (
  session: ApiSession,
  { verifiesTokens }: PushFeatures,
): RouterApiSession => ({
  token: session.token,
  id: routerIdOf(session.id),
  certFingerprints: fingerprintsAt(session, Date.now()),
  identityId: verifiesTokens ? session.identityId : '', // wire: others do not know the field
})

export const encodeAdded = (isFullState: boolean, apiSessions: RouterApiSession[]): Uint8Array =>
  ApiSessionAdded.encode({ isFullState, apiSessions }).finish()

/** The body of a message of a full state: of protobuf messages that follow each other, the lists are joined. */
export const joinEncodings = (encodings: readonly Uint8Array[]): Uint8Array =>
  Buffer.concat([isFullState, ...encodings])

const isFullState = encodeAdded(true, [])

/** API sessions as routers get them, each encoded once for the full states of all routers that are alike. */
export function openEncodings() {
  const [plain, withIdentity] = [new Map<ApiSession, Uint8Array>(), new Map<ApiSession, Uint8Array>()]
  return {
    of(session: ApiSession, features: PushFeatures): Uint8Array {
      const encodings = features.verifiesTokens ? withIdentity : plain
      const encoding = encodings.get(session) ?? encodeAdded(false, [routerApiSession(session, features)])
      encodings.set(session, encoding)
      return encoding
    },
    delete(session: ApiSession): void {
      plain.delete(session)
      withIdentity.delete(session)
    },
    clear(): void {
      plain.clear()
      withIdentity.clear()
    },
  }
}

export type Encodings = ReturnType<typeof openEncodings>
