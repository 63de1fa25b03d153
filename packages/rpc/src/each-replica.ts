import type { ServiceDefinition } from '@grpc/grpc-js'
import type { Methods } from './methods.js'
import type { Peers } from './peers.js'
import { remote } from './remote.js'

/** The client of one replica. */
export interface OneReplica<Definition> {
  readonly address: string
  readonly methods: Methods<Definition>
}

/** One client for each replica that is known at this time. Its calls go to no other replica, also while it is away. */
export const eachReplica = <D extends ServiceDefinition>(
  definition: D,
  peers: Peers,
): readonly OneReplica<D>[] =>
  peers.replicas().map((replica) => ({
    address: replica.address,
    methods: remote(definition, {
      ...peers,
      next: () => replica,
      others: async () => false,
    }),
  }))
