import { ownProcess } from '@overlay/platform/part'
import { runProgram } from '@overlay/platform/process'
import { runPolicy } from './run.js'

await runProgram('policy', () => runPolicy(process.env, `${import.meta.dirname}/../migrations`, ownProcess))
