import { openHashing } from '../../services/identity/src/credentials/hashing.js'

// The cost of a password alone, with the parameters of the original. Answers each message with the durations of hashes.

const running = 4 // the threads of this runtime
const waiting = 1000
const hashing = openHashing({ memoryKib: 3072, passes: 1, lanes: 1, running, waiting })
const turn = { source: '', name: '', signal: new AbortController().signal }
const password = 'bench-Passw0rd'

process.on('message', async ({ concurrency, seconds }: { concurrency: number; seconds: number }) => {
  const end = performance.now() + seconds * 1000
  const durations: number[] = []
  const worker = async (): Promise<void> => {
    while (performance.now() < end) {
      const started = performance.now()
      await hashing.inTurn(turn, ({ compare }) => compare(null, password))
      durations.push(performance.now() - started)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  process.send?.(durations)
})
process.on('disconnect', () => process.exit())
