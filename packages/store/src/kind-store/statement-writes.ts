import { type Entity, memoized, type RowOf } from '@overlay/model'
import { metrics } from '@overlay/process'
import { coalesced } from '@overlay/process/async'
import { type Context, Fault, type Written } from '@overlay/rpc'
import type { Sql } from 'sql-template-tag'
import { batchWriter, type RowWrite, type WrittenRow } from '../change-log/batch-writer.js'
import { idsByKind, momentOf, ownerOf } from '../change-log/deleted-entities.js'
import { codeOf } from '../postgres/client.js'
import type { Tx } from '../postgres/database.js'
import { isAway } from '../postgres/database-failure.js'
import type { Store } from './kind.js'
import { type Reference, referencesIn } from './references.js'
import { type AnyRow, columnValues, plainOf, plainOfNew } from './row.js'
import { openSeenRows, type SeenRow, type SeenRows } from './seen-rows.js'
import type { Named, NextRow, WriteRequest } from './write-request.js'
import { type ForeignReference, type Referred, type RowInList, writeStatement } from './write-statement.js'

/** A write as the statement takes it. */
interface Entry extends RowWrite, RowInList {
  /** The row without secrets and times. Absent: it is deleted. */
  readonly plain: Readonly<Record<string, unknown>> | undefined
}

type Writer = (entry: Entry) => Promise<WrittenRow | undefined>

const TRIES = 2
/** A larger row is written alone: a batch of rows must remain a small statement. */
const MOST_CHARACTERS = 32_768

/**
 * Writes a row in one statement that other writes of the kind share. The seams run before it, on the row as this replica
 * has seen it last; the statement writes it only if neither that row nor a row of this schema to which it refers has
 * changed. It waits for no lock of a row: what is locked is left out.
 *
 * Undefined: nothing is written, and a transaction must decide. That is so for refusals, for seams that use the
 * transaction, and for references that do not exist.
 */
export function statementWrites(
  store: Store,
): (request: WriteRequest, context: Context) => Promise<Written | undefined> {
  const { db, log } = store.changeLog
  const rows = openSeenRows(db)
  const takeMoment = coalesced(() => momentOf(db))
  const writers = new Map<string, Writer>()

  /** The writer whose statement has the parts that the entry needs. */
  function writerFor(
    { kind, operation }: WriteRequest,
    scope: Sql | undefined,
    { refers, foreign }: Entry,
  ): Writer {
    const { entity, seams } = kind
    const referred = [...new Set(refers.map((one) => one.kind))].sort()
    const isForeign = foreign.length > 0
    const key = [entity.kind, operation, scope?.text, isForeign, ...referred].join(' ')
    let writer = writers.get(key)
    if (!writer) {
      const write = writeStatement({
        entity,
        operation,
        scope,
        isUsed: seams.isUsed,
        isForeign,
        referred: referred.map((name) => store.kindOf(name).entity),
      })
      const name = `${operation}-${entity.kind}-${writers.size}`
      const { followed } = entity
      writer = batchWriter<Entry>(store.changeLog, { kind: entity.kind, name, followed, write })
      writers.set(key, writer)
    }
    return writer
  }

  /** Asks the owners of entities of other services. Undefined: one of the entities does not exist. */
  async function askOwners(
    references: readonly Reference[],
    context: Context,
  ): Promise<readonly ForeignReference[] | undefined> {
    const byKind = idsByKind(references.filter(({ kind }) => !store.owns(kind)))
    const moment = await takeMoment()
    const exist = async (kind: string, ids: readonly string[]): Promise<boolean> => {
      const names = await store.names(kind, ids, context)
      return ids.every((id) => names.has(id))
    }
    const answers = await Promise.all([...byKind].map(([kind, ids]) => exist(kind, [...ids])))
    if (answers.includes(false)) return undefined
    return [...byKind].flatMap(([kind, ids]) =>
      [...ids].map((referred) => ({ kind, referred, owner: ownerOf(kind), moment })),
    )
  }

  const giveUp = (cause: Cause): undefined => {
    metrics.writeFallbacks.inc({ schema: db.schema, cause })
  }

  async function attempt(request: WriteRequest, scope: Sql | undefined, context: Context): Promise<Attempt> {
    const { operation, kind, id } = request
    const { entity } = kind
    const references = referencesIn(request.members)
    const own = references.filter((one) => store.owns(one.kind))
    const foreign = own.length < references.length ? await askOwners(references, context) : []
    if (!foreign) return impossible('row')
    const before = operation === 'create' ? undefined : await rows.find(entity, id)
    if (operation !== 'create' && !before) return impossible('row')

    const reading = openReading(rows)
    const next = await request.step(outside, before?.row ?? null, {
      context,
      also: refuseOutside,
      exists: () => true, // or the statement leaves the row out
      named: reading.named,
    })
    const refers = [...reading.seen, ...withoutVersions(own, reading.seen)]
    const entry = entryOf(entity, id, before, next, { refers, foreign }, context)
    if (entry.columns.length + (entry.before?.length ?? 0) > MOST_CHARACTERS) return impossible('size')
    const written = await writerFor(request, scope, entry)(entry)
    if (written) {
      remember(rows, entity, entry, written)
      return { written: { id, position: written.position } }
    }
    rows.forget(entity, id)
    for (const one of reading.seen) rows.forget(store.kindOf(one.kind).entity, one.referred)
    return before ? outdated : impossible('row')
  }

  return async (request, context) => {
    const { operation, kind } = request
    const { entity, seams } = kind
    if (operation === 'delete' && seams.deleting && !seams.isUsed) return giveUp('needed')
    const scope = operation === 'create' ? undefined : seams.scope?.(context.caller)
    if (scope && scope.values.length > 0) return giveUp('needed') // each caller would have a statement
    try {
      for (let left = TRIES; left > 0; left--) {
        const { written, cause } = await attempt(request, scope, context)
        if (written) return written
        if (cause !== 'outdated') return giveUp(cause)
      }
      return giveUp('outdated')
    } catch (err) {
      rows.forget(entity, request.id)
      if (isAway(err)) throw err
      // the transaction decides, and fails in the same way
      const cause = causeOf(err)
      if (cause === 'error')
        log.warn(
          { err, kind: entity.kind, operation },
          'write failed in a shared statement, a transaction decides',
        )
      return giveUp(cause)
    }
  }
}

/** Why nothing is written. `outdated`: rows have changed since they were seen, and are forgotten. */
type Cause = 'needed' | 'row' | 'outdated' | 'refused' | 'size' | 'error'

type Attempt =
  | { readonly written: Written; readonly cause?: undefined }
  | { readonly written?: undefined; readonly cause: Cause }

const impossible = (cause: Cause): Attempt => ({ cause })
const outdated = impossible('outdated')

/** A refusal is a fault, or the violation of a constraint. */
function causeOf(err: unknown): Cause {
  if (err instanceof NeedsTransaction) return 'needed'
  if (err instanceof Fault || codeOf(err).startsWith('23')) return 'refused'
  return 'error'
}

class NeedsTransaction extends Error {}

function refuseOutside(): never {
  throw new NeedsTransaction()
}

/** Given to seams in place of a transaction. One that uses it ends the attempt. */
const outside: Tx = { inTransaction: true, query: refuseOutside }

/** Reads rows for the seams, and collects what the statement must compare. */
function openReading(rows: SeenRows): { readonly named: Named; readonly seen: Referred[] } {
  const seen: Referred[] = []
  return {
    seen,
    async named<E extends Entity>(entity: E, ids: readonly string[]) {
      const found = new Map<string, RowOf<E>>()
      for (const one of await Promise.all(ids.map((id) => rows.find(entity, id)))) {
        if (!one) continue
        found.set(one.row.id, one.row as RowOf<E>)
        seen.push({ kind: entity.kind, referred: one.row.id, version: one.version })
      }
      return found
    },
  }
}

const withoutVersions = (references: readonly Reference[], seen: readonly Referred[]): Referred[] =>
  [...idsByKind(references)].flatMap(([kind, ids]) =>
    [...ids]
      .filter((id) => !seen.some((one) => one.kind === kind && one.referred === id))
      .map((referred) => ({ kind, referred, version: undefined })),
  )

function entryOf(
  entity: Entity,
  id: string,
  before: SeenRow | undefined,
  next: NextRow | null,
  references: Pick<Entry, 'refers' | 'foreign'>,
  context: Context,
): Entry {
  const plain = next ? plainOfNew(entity, id, next.values, next.tags) : undefined
  return {
    id,
    plain,
    version: before?.version,
    columns: next ? JSON.stringify(columnValues(entity, id, next.values, next.tags)) : '',
    before: before && JSON.stringify(plainOf(entity, before.row)),
    after: plain && JSON.stringify(plain),
    ...references,
    by: context,
    deadline: context.deadline,
  }
}

/** Keeps the written row, unless members of it are secret or not in the form in which they are read. */
function remember(rows: SeenRows, entity: Entity, { plain, after }: Entry, written: WrittenRow): void {
  const { id, version, createdAt, updatedAt } = written
  if (!plain || after === undefined || version === null || !isReadAsWritten(entity)) rows.forget(entity, id)
  else
    rows.keep(entity, { version, row: { ...plain, createdAt, updatedAt } as unknown as AnyRow }, after.length)
}

const isReadAsWritten = memoized(({ fields }: Entity) =>
  Object.values(fields).every(({ secret, symbol }) => !secret && symbol !== 'datetime'),
)
