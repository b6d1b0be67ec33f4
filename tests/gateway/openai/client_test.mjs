// The official client's own calls against the gateway. OPENAI_BASE_URL and OPENAI_API_KEY say
// where; the engine behind it is a fake that answers every token with "ab ".
import assert from 'node:assert/strict';
import test from 'node:test';
import OpenAI from 'openai';

const client = new OpenAI({ maxRetries: 0 });
const model = 'tiny';
const messages = [{ role: 'user', content: 'Hello there' }];

test('models are listed and found', async () => {
  const models = await client.models.list();
  assert.deepEqual(models.data.map((one) => one.id), [model]);
  assert.equal((await client.models.retrieve(model)).id, model);
});

test('a chat is answered with its usage', async () => {
  const answer = await client.chat.completions.create({
    model, messages, n: 2, max_completion_tokens: 2, temperature: 0, seed: 1, stop: ['zz'],
    logprobs: true, top_logprobs: 2, frequency_penalty: 0.5, presence_penalty: 0.5,
    logit_bias: { 5: -100 }, user: 'somebody',
  });
  assert.match(answer.id, /^chatcmpl-/);
  assert.equal(answer.object, 'chat.completion');
  assert.equal(answer.choices.length, 2);
  assert.equal(answer.choices[1].message.content, 'ab ab ');
  assert.equal(answer.choices[0].finish_reason, 'length');
  assert.equal(answer.choices[0].logprobs.content.length, 2);
  assert.equal(answer.choices[0].logprobs.content[0].top_logprobs.length, 2);
  assert.equal(answer.usage.completion_tokens, 4);
  assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + 4);
  assert.equal(answer._request_id, answer.id);
});

test('a stream brings pieces, a role and usage at the end', async () => {
  const stream = await client.chat.completions.create({
    model, messages, stream: true, stream_options: { include_usage: true },
  });
  let text = '';
  let usage = null;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta?.content ?? '';
    if (chunk.usage) usage = chunk.usage;
  }
  assert.equal(text, 'ab ab ab ');
  assert.equal(usage.completion_tokens, 3);
});

test('the streaming helper puts the answer together', async () => {
  const stream = client.chat.completions.stream({ model, messages });
  const answer = await stream.finalChatCompletion();
  assert.equal(answer.choices[0].message.content, 'ab ab ab ');
  assert.equal(answer.choices[0].message.role, 'assistant');
});

test('an answer can be sent back as it came', async () => {
  const first = await client.chat.completions.create({ model, messages });
  const second = await client.chat.completions.create({
    model, messages: [...messages, first.choices[0].message, { role: 'user', content: 'Go on' }],
  });
  assert.equal(second.choices[0].message.content, 'ab ab ab ');
});

test('a JSON schema is taken', async () => {
  const answer = await client.chat.completions.create({
    model, messages,
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'point', strict: true, schema: { type: 'object', properties: {} } },
    },
  });
  assert.equal(answer.choices.length, 1);
});

test('completions, whole and streamed', async () => {
  const answer = await client.completions.create({
    model, prompt: ['one', 'two'], max_tokens: 2, logprobs: 1,
  });
  assert.equal(answer.object, 'text_completion');
  assert.deepEqual(answer.choices.map((one) => one.text), ['ab ab ', 'ab ab ']);
  assert.deepEqual(answer.choices[0].logprobs.text_offset, [0, 3]);
  let text = '';
  for await (const chunk of await client.completions.create({ model, prompt: 'x', stream: true }))
    text += chunk.choices[0]?.text ?? '';
  assert.equal(text, 'ab ab ab ');
});

test('embeddings, in the encoding the client likes and as numbers', async () => {
  const coded = await client.embeddings.create({ model, input: ['a', 'bbb'] });
  assert.deepEqual(coded.data.map((one) => one.embedding[0]), [1, 3]);
  const plain = await client.embeddings.create({ model, input: 'ab', encoding_format: 'float' });
  assert.deepEqual(plain.data[0].embedding, [2, 0.5, 0.5, 0.5]);
  assert.equal(plain.usage.total_tokens, plain.usage.prompt_tokens);
});

test('faults are the errors that the client knows', async () => {
  const chat = (more) => client.chat.completions.create({ model, messages, ...more });
  await assert.rejects(chat({ model: 'none' }), (error) => {
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.equal(error.code, 'model_not_found');
    assert.equal(error.param, 'model');
    assert.equal(error.type, 'invalid_request_error');
    return true;
  });
  await assert.rejects(chat({ max_tokens: 0 }), OpenAI.BadRequestError);
  await assert.rejects(chat({ messages: [] }), OpenAI.BadRequestError);
  await assert.rejects(chat({ temperature: 'NaN' }), OpenAI.BadRequestError);
  await assert.rejects(chat({ messages: [{ role: 'user', content: 'x'.repeat(100_000) }] }),
    (error) => error.code === 'context_length_exceeded');
  const stranger = new OpenAI({ maxRetries: 0, apiKey: 'wrong' });
  await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
  const limited = new OpenAI({ maxRetries: 0, apiKey: 'key-small' });
  await limited.chat.completions.create({ model, messages });
  await assert.rejects(limited.chat.completions.create({ model, messages }), OpenAI.RateLimitError);
});

test('a failure in the middle of a stream reaches the client', async () => {
  const stream = await client.chat.completions.create({
    model, stream: true, messages: [{ role: 'user', content: 'break midway' }],
  });
  await assert.rejects(async () => {
    for await (const _ of stream) { /* until it breaks */ }
  }, OpenAI.APIError);
});

test('a stream can be broken off', async () => {
  const stream = await client.chat.completions.create({
    model, stream: true, messages: [{ role: 'user', content: 'hold' }], max_tokens: 1,
  }, { timeout: 200 }).catch((error) => error);
  assert.ok(stream instanceof OpenAI.APIConnectionTimeoutError);
  const answer = await client.chat.completions.create({ model, messages });
  assert.equal(answer.choices[0].message.content, 'ab ab ab ');
});
