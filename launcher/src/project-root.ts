import { resolve } from 'node:path'

/** For sources and bundles: both are two folders below. */
export const projectRoot = resolve(import.meta.dirname, '../..')
