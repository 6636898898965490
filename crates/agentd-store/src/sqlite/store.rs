//! The embedded store: passes each method of [`Store`] to the part that does the work.

use super::follower::Follower;
use super::notify::{self, Notify};
use super::readers::Readers;
use super::writer::Writer;
use super::{
    Options, agents, backup, connect, drafts, due, export, fold, head, load, names, open,
    purgeable, read, search, spending, turns, verify, window,
};
use crate::backup::{BackedUp, BackupMark, BackupSink};
use crate::damage::Report;
use crate::error::{Error, Result};
use crate::export::{Checks, File};
use crate::rules::Journals;
use crate::store::*;
use agentd_core::event::Event;
use agentd_core::id::{AgentId, ConversationId, Seq, TurnId};
use agentd_core::state::Conversation;
use agentd_core::time::Timestamp;
use agentd_core::usage::Spent;
use agentd_core::window::Window;
use async_trait::async_trait;
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A store in a directory. Clones share it; dropping the last one closes it.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

/// The fields are dropped in this order, so that the writer closes the last connection, which moves the log into the
/// database and deletes it. If readers closed last and at the same time, each could see another one and leave the log.
struct Inner {
    follower: Follower,
    readers: Readers,
    writer: Writer,
    notify: Arc<Notify>,
    head: PathBuf,
    import_checks: Checks,
    /// For connections of backups, which are open for as long as the backup takes.
    options: Options,
}

impl SqliteStore {
    /// Opens the store, and creates it if it does not exist. Blocks the calling thread.
    pub fn open(options: Options) -> Result<Self> {
        // First, because it creates the files that all parts need.
        let (databases, known) = open::open(&options)?;
        let follower = Follower::start(&options)?;
        let notify = Arc::new(Notify::new(follower.waker()));
        let readers = Readers::start(&options)?;
        let head = options.head();
        let import_checks = match options.is_injected_bug("import_unchecked") {
            true => Checks::None,
            false => Checks::All,
        };
        let of_backups = options.clone();
        let writer = Writer::start(options, databases, known, Arc::clone(&notify))?;
        Ok(Self {
            inner: Arc::new(Inner {
                follower,
                writer,
                readers,
                notify,
                head,
                import_checks,
                options: of_backups,
            }),
        })
    }

    /// The same as [`Store::purged_conversations`], for the journal of another home that may be in use. Changes nothing.
    pub fn purged_in(options: &Options) -> Result<Vec<(AgentId, ConversationId)>> {
        let journal = connect::reader(options, &options.journal())?;
        connect::leave_log(&journal)?;
        backup::purged(&journal)
    }

    async fn read_page(&self, query: ReadQuery) -> Result<Page> {
        let readers = &self.inner.readers;
        readers.run(move |db| read::page(&db.journal, &query)).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn claim(&self, agent: AgentId, owner: &str) -> Result<Claim> {
        self.inner.writer.claim(agent, owner.to_owned()).await
    }

    async fn append(&self, append: Append) -> Result<Ack> {
        self.inner.writer.append(append).await
    }

    async fn write_draft(&self, fence: Fence, chunk: DraftChunk) -> Result<DraftAck> {
        self.inner.writer.write_draft(fence, chunk).await
    }

    async fn draft(&self, agent: AgentId) -> Result<Option<Draft>> {
        self.inner
            .readers
            .run(move |db| drafts::read(&db.journal, agent))
            .await
    }

    async fn load(&self, agent: AgentId) -> Result<Loaded> {
        let readers = &self.inner.readers;
        readers.run(move |db| load::agent(db, agent)).await
    }

    async fn window(
        &self,
        agent: AgentId,
        conversation: ConversationId,
        through: Seq,
    ) -> Result<Window> {
        self.inner
            .readers
            .run(move |db| window::load(db, agent, conversation, through))
            .await
    }

    async fn read(&self, query: ReadQuery) -> Result<Page> {
        self.read_page(query).await
    }

    async fn turn_ends(&self, query: TurnQuery) -> Result<Vec<Event>> {
        self.inner
            .readers
            .run(move |db| turns::ends(&db.journal, &query))
            .await
    }

    async fn turns_between(
        &self,
        agent: AgentId,
        ids: RangeInclusive<TurnId>,
        limit: usize,
    ) -> Result<Vec<TurnId>> {
        self.inner
            .readers
            .run(move |db| turns::between(&db.journal, agent, &ids, limit))
            .await
    }

    async fn count_turn_ends(
        &self,
        agent: AgentId,
        conversation: ConversationId,
        through: Seq,
    ) -> Result<usize> {
        self.inner
            .readers
            .run(move |db| turns::count(&db.journal, agent, conversation, through))
            .await
    }

    async fn read_all(&self, after: Cursor, limit: usize) -> Result<GlobalPage> {
        self.inner
            .readers
            .run(move |db| read::global_page(&db.journal, &after, limit))
            .await
    }

    async fn end(&self) -> Result<Cursor> {
        let readers = &self.inner.readers;
        readers.run_short(|db| read::end(&db.journal)).await
    }

    fn commits(&self) -> Commits {
        Commits(self.inner.notify.commits())
    }

    fn tail(&self, agent: AgentId, after: Seq) -> Tail {
        Tail {
            next: Box::new(SqliteTail {
                head: self.inner.notify.subscribe(agent),
                store: self.clone(),
                agent,
                after,
            }),
        }
    }

    async fn find(&self, name: &str) -> Result<Option<AgentId>> {
        let name = name.to_owned();
        let readers = &self.inner.readers;
        readers.run(move |db| names::find(&db.journal, &name)).await
    }

    async fn agents_between(
        &self,
        ids: RangeInclusive<AgentId>,
        limit: usize,
    ) -> Result<Vec<AgentId>> {
        self.inner
            .readers
            .run(move |db| names::between(&db.journal, &ids, limit))
            .await
    }

    async fn agents(&self, query: AgentQuery) -> Result<AgentPage> {
        self.inner
            .readers
            .run(move |db| agents::list(&db.journal, &query))
            .await
    }

    async fn with_tasks(&self) -> Result<Vec<AgentId>> {
        let readers = &self.inner.readers;
        readers.run(|db| agents::with_tasks(&db.journal)).await
    }

    async fn idle_resets(&self, limit: usize) -> Result<Vec<(AgentId, Timestamp)>> {
        self.inner
            .readers
            .run(move |db| due::idle_resets(&db.journal, limit))
            .await
    }

    async fn due_schedules(&self, limit: usize) -> Result<Vec<(AgentId, Timestamp)>> {
        self.inner
            .readers
            .run(move |db| due::schedules(&db.journal, limit))
            .await
    }

    async fn with_schedules(&self) -> Result<Vec<AgentId>> {
        let readers = &self.inner.readers;
        readers.run(|db| due::with_schedules(&db.journal)).await
    }

    async fn conversations(&self, agent: AgentId) -> Result<Vec<Conversation>> {
        self.inner
            .readers
            .run(move |db| Ok(fold::state(db, agent)?.0.tree.iter().cloned().collect()))
            .await
    }

    async fn search(&self, query: SearchQuery) -> Result<SearchPage> {
        let look = |query: SearchQuery| {
            let readers = &self.inner.readers;
            readers.run(move |db| search::search(db, &query))
        };
        match look(query.clone()).await {
            // Only the cache is damaged.
            Err(error) if open::is_useless(&error) => {
                self.inner.follower.renew_after(error).await?;
                look(query).await
            }
            found => found,
        }
    }

    async fn usage(&self, agent: Option<AgentId>) -> Result<Spent> {
        self.inner
            .readers
            .run(move |db| agents::usage(&db.journal, agent))
            .await
    }

    async fn spending(&self, query: SpendingQuery) -> Result<Vec<SpendingRow>> {
        self.inner
            .readers
            .run(move |db| spending::spending(&db.journal, &query))
            .await
    }

    async fn export(&self, agent: AgentId, out: Box<dyn Write + Send>) -> Result<Exported> {
        let readers = &self.inner.readers;
        readers.run(move |db| export::write(db, agent, out)).await
    }

    async fn is_listed(&self, agent: AgentId) -> Result<bool> {
        let readers = &self.inner.readers;
        readers.run(move |db| Journals::is_listed(db, agent)).await
    }

    async fn import(&self, input: Box<dyn File>, order: Import) -> Result<Imported> {
        let checks = self.inner.import_checks;
        let file = self
            .inner
            .readers
            .run(move |_| crate::export::read(input, checks))
            .await?;
        self.inner.writer.import(file, order).await
    }

    /// On a thread and a connection of its own: a backup may take long, and the readers serve everything else.
    async fn back_up(
        &self,
        mut out: Box<dyn BackupSink>,
        since: Option<BackupMark>,
    ) -> Result<BackedUp> {
        let (reply, answer) = oneshot::channel();
        let options = self.inner.options.clone();
        let work = move || {
            let written = backup::write(&options, since.as_ref(), &mut *out);
            // The caller may be gone; then the backup is of no use.
            let _gone = reply.send(written);
        };
        // Not joined: the caller waits for the answer.
        let _thread = connect::spawn("backup", work)?;
        answer.await.map_err(|_| Error::Closed)?
    }

    async fn purged_conversations(&self) -> Result<Vec<(AgentId, ConversationId)>> {
        let readers = &self.inner.readers;
        readers.run(|db| backup::purged(&db.journal)).await
    }

    async fn would_purge(
        &self,
        agent: AgentId,
        conversations: Vec<ConversationId>,
    ) -> Result<Deletion> {
        self.inner
            .readers
            .run(move |db| purgeable::would_purge(db, agent, &conversations))
            .await
    }

    async fn purge(
        &self,
        fence: Fence,
        conversation: ConversationId,
        at: Timestamp,
    ) -> Result<Purge> {
        // Check first: a purge that is refused must not remove anything from the index.
        let readers = &self.inner.readers;
        let check = readers.run(move |db| purgeable::check(db, fence, conversation));
        let loses = check.await?;
        // The index first: it needs the journal's rows to find what to remove.
        let follower = &self.inner.follower;
        let forgetting = follower.forget(fence.agent, conversation).await?;
        let writer = &self.inner.writer;
        writer
            .purge(fence, conversation, at, loses, forgetting)
            .await
    }

    async fn purge_files(
        &self,
        fence: Fence,
        keep: KeepFiles,
        at: Timestamp,
    ) -> Result<Option<Event>> {
        self.inner.writer.purge_files(fence, keep, at).await
    }

    async fn verify(&self, agent: Option<AgentId>) -> Result<Report> {
        let head = head::read(&self.inner.head);
        self.inner
            .readers
            .run(move |db| verify::verify(db, &head, agent))
            .await
    }

    async fn checkpoint(&self) -> Result<()> {
        self.inner.writer.checkpoint().await?;
        self.inner.follower.checkpoint().await
    }

    async fn wait_caught_up(&self) -> Result<()> {
        self.inner.follower.wait_caught_up().await
    }
}

struct SqliteTail {
    store: SqliteStore,
    agent: AgentId,
    after: Seq,
    head: notify::Subscription,
}

/// Events that a tail returns at once.
const TAIL_PAGE: usize = 256;

#[async_trait]
impl TailSource for SqliteTail {
    async fn next(&mut self) -> Result<Vec<Event>> {
        loop {
            // Marked before the read, so that a commit in between wakes it again.
            self.head.mark_seen();
            let query = ReadQuery::all(self.agent, self.after, TAIL_PAGE);
            let page = self.store.read_page(query).await?;
            if let Some(last) = page.events.last() {
                self.after = last.seq;
                return Ok(page.events);
            }
            self.head.changed().await.map_err(|_| Error::Closed)?;
        }
    }
}
