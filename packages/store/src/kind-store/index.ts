/*
 * The operations that all kinds share: list, get, create, update and delete of entities over tables of Postgres.
 *
 * - A *kind* is a type of entity: its definition (packages/model) and the behaviour that a service adds (kind.ts, with
 *   the seams of seams.ts, or operations of its own).
 * - A *row* is the database row of an entity (row.ts), a *change* what its write leaves in the audit and the change log
 *   (row-changes.ts).
 * - A *view* is what a kind adds to the members that follow from the row, for one audience.
 *
 * entity-service.ts answers the calls of the EntityService. Reads (reads.ts): list-rows.ts reads a page, single-rows.ts
 * one row; where.ts, order.ts and select.ts write SQL from filters, sorting and selections by filter-column.ts;
 * show-rows.ts makes JSON, by rendering.ts where SQL writes the members and by loaded-members.ts for all others. Writes
 * (writes.ts): body.ts reads bodies, check.ts and sizes.ts refuse, references.ts looks up and locks what is named,
 * write-rows.ts runs the transaction.
 */
export * from './all-pages.js'
export * from './body.js'
export * from './check.js'
export * from './deleted-since.js'
export * from './entity-service.js'
export * from './ids.js'
export { jsonFlag, jsonTime, markedJson } from './json-text.js'
export * from './kind.js'
export * from './list-rows.js'
export * from './loader.js'
export * from './order.js'
export * from './payload.js'
export * from './reads.js'
export * from './row.js'
export * from './row-changes.js'
export * from './seams.js'
export * from './select.js'
export * from './sizes.js'
export * from './unique-fault.js'
export * from './views.js'
export * from './where.js'
export * from './writes.js'
