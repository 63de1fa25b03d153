import { resolve } from 'node:path'

/** Right from the sources and from the bundle: both are two folders below. */
export const projectRoot = resolve(import.meta.dirname, '../..')
