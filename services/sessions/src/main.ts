import { ownProcess } from '@overlay/platform/part'
import { runProgram } from '@overlay/platform/process'
import { runSessions } from './run.js'

await runProgram('sessions', () =>
  runSessions(process.env, `${import.meta.dirname}/../migrations`, ownProcess),
)
