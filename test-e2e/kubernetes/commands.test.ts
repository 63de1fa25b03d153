import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { type KubernetesObject, render } from './kustomize.js'
import { workloadsIn } from './workloads.js'

const root = join(import.meta.dirname, '../..')

/** Commands with `kubectl` in the documents of operators: in blocks, and in text between backticks. */
async function readCommands(): Promise<readonly string[]> {
  const names = (await readdir(join(root, 'docs'))).filter((name) => name.endsWith('.md'))
  const texts = await Promise.all(names.map((name) => readFile(join(root, 'docs', name), 'utf8')))
  return texts.flatMap((text) => {
    const blocks = [...text.matchAll(/^ *```sh\n(.*?)^ *```/gms)].flatMap(([, block = '']) =>
      block.split('\n'),
    )
    const inline = [...text.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code)
    return [...blocks, ...inline].flatMap((code) => code.match(/\bkubectl .*/)?.[0] ?? [])
  })
}

let objects: readonly KubernetesObject[] = []
let commands: readonly string[] = []
let unavailable: unknown
beforeAll(async () => {
  commands = await readCommands()
  try {
    objects = (await render('overlays/production')).objects
  } catch (err) {
    if (process.env.CI === 'true') throw err
    console.warn(`skipping tests, because manifests cannot be rendered: ${err}`)
    unavailable = err
  }
}, 600_000)

const kinds: Readonly<Record<string, string>> = {
  deploy: 'Deployment',
  statefulset: 'StatefulSet',
  job: 'Job',
  hpa: 'HorizontalPodAutoscaler',
}

/** The objects that a command names, as `deploy/pki`, or `job -n overlay migrate-0-1-0`. */
const objectsIn = (command: string): readonly (readonly [kind: string, name: string])[] =>
  [...command.matchAll(/(?<!-k )\b(deploy|statefulset|job|hpa)(?:\/| -n overlay | )(?!-)([-\w]+)/g)].map(
    ([, kind = '', name = '']) => [kind, name],
  )

test('commands name objects, labels, containers, programs and ports that exist', ({ skip }) => {
  if (unavailable) skip()
  const workloads = workloadsIn(objects)
  const containers = workloads.flatMap((workload) => workload.containers)
  const exists = (kind: string, name: string): boolean =>
    objects.some((object) => object.kind === kinds[kind] && object.metadata.name === name)
  const problems = commands.flatMap((command) => {
    const missing = [
      ...objectsIn(command).filter(([kind, name]) => !exists(kind, name)),
      ...[...command.matchAll(/ -l (\S+)=([-\w]+)/g)].filter(
        ([, label = '', value]) => !workloads.some(({ labels }) => labels[label] === value),
      ),
      ...[...command.matchAll(/ -c (\S+)/g)].filter(
        ([, name]) => !containers.some((own) => own.name === name),
      ),
      ...[...command.matchAll(/ node (\S+)\/dist\/(\S+)\.js/g)].filter(
        ([, folder = '', program]) => !existsSync(join(root, folder, 'src', `${program}.ts`)),
      ),
      ...[...command.matchAll(/127\.0\.0\.1:(\d+)/g)].filter(
        ([, port]) =>
          !containers.some(({ ports }) => ports?.some((own) => own.containerPort === Number(port))),
      ),
    ]
    return missing.map(([text]) => `${text}: ${command}`)
  })
  expect(problems).toEqual([])
  expect(commands.length).toBeGreaterThan(25)
})

test('commands that name an object name its namespace', () => {
  const named = commands.filter((command) => objectsIn(command).length > 0)
  expect(named.filter((command) => !command.includes('-n overlay'))).toEqual([])
  expect(named.length).toBeGreaterThan(10)
})
