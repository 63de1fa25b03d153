import { type Cursor, changeIdOf, formatCursor } from './cursor.js'

/** A change as its row in the audit has it. `before` and `after` are JSON. */
export interface StoredChange {
  readonly id: number
  readonly at: Date
  readonly kind: string
  readonly entityId: string
  readonly entityName: string | null
  readonly requestId: string
  readonly identityId: string
  /** Null in rows of versions that did not store it. */
  readonly identityName: string | null
  /** As `identityName`. Empty: not a request of a client. */
  readonly sourceAddress: string | null
  /** The router that a terminator belongs to. */
  readonly routerId: string | null
  readonly before: string | null
  readonly after: string | null
}

/**
 * wire: `unattributed` is a client without a session, `controller` the system. `operator`, a user of the machine, is our
 * own.
 */
export type AuthorType = 'identity' | 'router' | 'controller' | 'unattributed' | 'operator'

/** A change in the form of the original's `entityChange` event, with members of our own. */
export interface ChangeEvent {
  readonly namespace: 'entityChange'
  readonly eventId: string
  readonly eventType: 'created' | 'updated' | 'deleted'
  readonly timestamp: string
  readonly metadata: {
    readonly author: { readonly type: AuthorType; readonly id?: string; readonly name?: string }
    readonly source?: { readonly type: 'rest' | 'ctrl.channel'; readonly remoteAddr?: string }
    readonly requestId?: string
  }
  readonly entityType: string
  readonly kind: string
  readonly entityId: string
  readonly entityName?: string
  /** Of the change, for the parameters `after` and `before` of lists. */
  readonly cursor: string
  readonly initialState?: Readonly<Record<string, unknown>>
  readonly finalState?: Readonly<Record<string, unknown>>
}

/** wire: names that do not follow from the names of collections. */
const irregularTypes: Readonly<Record<string, string>> = {
  'edge-routers': 'routers',
  'transit-routers': 'routers',
  'second-factors': 'mfas',
}

/** wire: the original's name of a kind. */
export const entityTypeOf = (kind: string): string =>
  irregularTypes[kind] ?? kind.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())

/** The event as JSON. States are inserted as they are stored. */
export function eventJson(schema: string, row: StoredChange): string {
  const { before, after } = row
  const cursor: Cursor = { atMs: row.at.getTime(), schema, id: row.id }
  const event: Omit<ChangeEvent, 'initialState' | 'finalState'> = {
    namespace: 'entityChange',
    eventId: changeIdOf(schema, row.id),
    eventType: before === null ? 'created' : after === null ? 'deleted' : 'updated',
    timestamp: row.at.toISOString(),
    metadata: metadataOf(row),
    entityType: entityTypeOf(row.kind),
    kind: row.kind,
    entityId: row.entityId,
    ...(row.entityName !== null && { entityName: row.entityName }),
    cursor: formatCursor(cursor),
  }
  let json = JSON.stringify(event).slice(0, -1)
  if (before !== null) json += `,"initialState":${before}`
  if (after !== null) json += `,"finalState":${after}`
  return `${json}}`
}

function metadataOf(row: StoredChange): ChangeEvent['metadata'] {
  const { identityId: id, identityName: name, sourceAddress, requestId } = row
  const author = { type: authorTypeOf(row), ...(id !== '' && { id }), ...(name && { name }) }
  const isOfRouter = sourceAddress === '' && id !== ''
  return {
    author,
    ...(sourceAddress
      ? { source: { type: 'rest', remoteAddr: sourceAddress } }
      : isOfRouter && { source: { type: 'ctrl.channel' } }),
    ...(requestId !== '' && { requestId }),
  }
}

function authorTypeOf({ identityId, identityName, sourceAddress, routerId }: StoredChange): AuthorType {
  if (identityId !== '') return identityId === routerId ? 'router' : 'identity'
  if (identityName) return 'operator'
  return sourceAddress === '' ? 'controller' : 'unattributed'
}
