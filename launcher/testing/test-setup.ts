import { testPostgres } from './test-postgres.js'

/** One Postgres for all tests of a run; OVERLAY_TEST_POSTGRES names another one, or the directory of its binaries. */
export async function setup(): Promise<() => Promise<void>> {
  const configured = process.env.OVERLAY_TEST_POSTGRES
  if (configured?.startsWith('postgres')) {
    process.env.OVERLAY_TEST_POSTGRES_URL = configured
    return async () => undefined
  }
  const postgres = await testPostgres()
  process.env.OVERLAY_TEST_POSTGRES_URL = postgres.url
  return async () => postgres[Symbol.asyncDispose]()
}
