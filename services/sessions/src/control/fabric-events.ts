/**
 * An event of the network, in the JSON of the original's event streams: `namespace` is for example `fabric.circuits`,
 * `fabric.routers`, `fabric.terminators`, `fabric.links`, `edge.sessions`, `edge.apiSessions`.
 */
export interface FabricEvent {
  readonly namespace: string
  readonly event_type?: string
  readonly timestamp?: string
  readonly [member: string]: unknown
}

/** Publishes events on the bus for those who stream them. Never throws, and costs nothing while there is no listener. */
export interface FabricEvents {
  emit(event: FabricEvent): void
}
