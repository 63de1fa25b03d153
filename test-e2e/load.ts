import { until } from './traffic.js'

/** Clients that work without a pause, each one round after the other. */
export interface Load extends AsyncDisposable {
  /** Starts a client. */
  add(name: string, round: (count: number) => Promise<void>): void
  /** Returns when every client has completed a round that began after this call. Throws what a client has failed with. */
  round(): Promise<void>
}

interface Client {
  readonly name: string
  /** That it has begun. */
  started: number
}

export function startLoad(): Load {
  const clients: Client[] = []
  const running: Promise<void>[] = []
  const failures: Error[] = []
  let isStopped = false

  async function run(client: Client, round: (count: number) => Promise<void>): Promise<void> {
    try {
      while (!isStopped) await round(client.started++)
    } catch (cause) {
      failures.push(new Error(`${new Date().toISOString()} ${client.name}: ${cause}`, { cause }))
    }
  }
  function check(): void {
    if (failures.length > 0) throw new AggregateError(failures, failures.map(String).join('\n'))
  }
  return {
    add(name, round) {
      const client = { name, started: 0 }
      clients.push(client)
      running.push(run(client, round))
    },
    async round() {
      const goals = clients.map((client) => ({ client, goal: client.started + 1 })) // after the round under way
      await until(() => {
        check()
        return goals.every(({ client, goal }) => client.started > goal)
      })
    },
    async [Symbol.asyncDispose]() {
      isStopped = true
      await Promise.all(running)
      check()
    },
  }
}
