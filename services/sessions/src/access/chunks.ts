import { ApiSessionAdded, type RouterApiSession } from '@overlay/channel'
import { isUuid } from '@overlay/model'
import { cuidAt, timeOfUuid } from '@overlay/platform/kind-store'
import { type ApiSession, fingerprintsAt } from '../domain/api-session.js'

/** Some API sessions, encoded once for all routers. */
interface Chunk {
  readonly index: number
  readonly sessions: ApiSession[]
  body: Uint8Array | undefined
}

/** All API sessions in chunks of a full state. A session stays in its chunk. */
export interface Chunks {
  add(session: ApiSession): void
  changed(session: ApiSession): void
  remove(session: ApiSession): void
  count(): number
  /** Body of a message; undefined: the chunk is empty. */
  body(index: number): Uint8Array | undefined
  indexOf(session: ApiSession): number
  /** Drops encoded bodies: they take as much memory as the sessions. */
  dropBodies(): void
}

/** wire: sessions of one message of a full state. */
export const SESSIONS_PER_CHUNK = 100

/** wire: routers compare ids as texts: the greater one is newer. The UUID of an API session begins with its time. */
export const routerIdOf = (id: string): string =>
  isUuid(id) ? cuidAt(timeOfUuid(id) * 1000, id.replaceAll('-', '').slice(-13)) : id

export const routerApiSession = (session: ApiSession): RouterApiSession => ({
  token: session.token,
  id: routerIdOf(session.id),
  certFingerprints: fingerprintsAt(session, Date.now()),
})

export const encodeAdded = (isFullState: boolean, apiSessions: RouterApiSession[]): Uint8Array =>
  ApiSessionAdded.encode({ isFullState, apiSessions }).finish()

export function openChunks(): Chunks {
  const chunks: Chunk[] = []
  const withRoom = new Set<Chunk>()

  const chunkOf = ({ chunk }: ApiSession): Chunk | undefined => chunk as Chunk | undefined

  function chunkWithRoom(): Chunk {
    for (const chunk of withRoom) return chunk
    const chunk: Chunk = { index: chunks.length, sessions: [], body: undefined }
    chunks.push(chunk)
    withRoom.add(chunk)
    return chunk
  }
  return {
    add(session) {
      const chunk = chunkWithRoom()
      chunk.sessions.push(session)
      chunk.body = undefined
      session.chunk = chunk
      if (chunk.sessions.length === SESSIONS_PER_CHUNK) withRoom.delete(chunk)
    },
    changed(session) {
      const chunk = chunkOf(session)
      if (chunk) chunk.body = undefined
    },
    remove(session) {
      const chunk = chunkOf(session)
      if (!chunk) return
      const at = chunk.sessions.indexOf(session)
      const last = chunk.sessions.pop()
      if (last && last !== session) chunk.sessions[at] = last
      chunk.body = undefined
      session.chunk = undefined
      withRoom.add(chunk)
    },
    count: () => chunks.length,
    body(index) {
      const chunk = chunks[index]
      if (!chunk || chunk.sessions.length === 0) return undefined
      chunk.body ??= encodeAdded(true, chunk.sessions.map(routerApiSession))
      return chunk.body
    },
    indexOf: (session) => chunkOf(session)?.index ?? Number.POSITIVE_INFINITY,
    dropBodies() {
      for (const chunk of chunks) chunk.body = undefined
    },
  }
}
