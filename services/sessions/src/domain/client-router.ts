/** A router, and its connection while it has one. */
export interface RouterRow {
  readonly id: string
  readonly name: string
  readonly cost: number
  readonly noTraversal: boolean
  readonly disabled: boolean
  readonly isOnline: boolean
  readonly hostname: string | null
  readonly supportedProtocols: Readonly<Record<string, string>> | null
  readonly syncStatus: string | null
}

/** A router as sessions and services show it to clients. */
export function clientRouter({ id: _, hostname, supportedProtocols, syncStatus, ...router }: RouterRow) {
  const protocols = supportedProtocols ?? {}
  return {
    ...router,
    hostname: hostname ?? '',
    syncStatus: syncStatus ?? 'SYNC_UNKNOWN',
    supportedProtocols: protocols,
    urls: protocols, // wire: SDKs before `supportedProtocols` read `urls`
  }
}

export type ClientRouter = ReturnType<typeof clientRouter>
