#include "study/database.h"

#include <sqlite3.h>

#include <cmath>
#include <utility>

#include "core/error.h"

namespace ridgeline::study {
namespace {

constexpr int kPatienceMilliseconds = 30'000;  // while another process reads or writes

}  // namespace

Database::Database(const std::string& path, Use use) : path_(path) {
  // A reader, too, must be able to undo the half transaction of a writer that was killed.
  const int flags = use == Use::read ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  if (sqlite3_open_v2(path.c_str(), &connection_, flags, nullptr) != SQLITE_OK) {
    const std::string reason = connection_ != nullptr ? sqlite3_errmsg(connection_) : "out of memory";
    sqlite3_close(connection_);
    throw Failure("{}: the study cannot be opened: {}", path, reason);
  }
  sqlite3_busy_timeout(connection_, kPatienceMilliseconds);
  sqlite3_extended_result_codes(connection_, 1);
}

Database::~Database() { sqlite3_close(connection_); }

void Database::fail(const char* what) const {
  throw Failure("{}: {}: {}; the file is left as it is", path_, what, sqlite3_errmsg(connection_));
}

Statement Database::prepare(const char* sql) { return Statement(*this, sql); }

void Database::execute(const char* sql) {
  if (sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail("the study cannot be written or read");
}

int64_t Database::last_row() const { return sqlite3_last_insert_rowid(connection_); }

Statement::Statement(Database& database, const char* sql) : database_(database) {
  if (sqlite3_prepare_v2(database.connection_, sql, -1, &statement_, nullptr) != SQLITE_OK) {
    database.fail("this is no study of this version");
  }
}

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_), statement_(std::exchange(other.statement_, nullptr)), bound_(other.bound_) {}

Statement::~Statement() { sqlite3_finalize(statement_); }

Statement& Statement::bind(int64_t value) {
  RIDGELINE_ASSERT(sqlite3_bind_int64(statement_, ++bound_, value) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind(double value) {
  if (!std::isfinite(value)) return bind_null();
  RIDGELINE_ASSERT(sqlite3_bind_double(statement_, ++bound_, value) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind(const std::string& value) {
  const int size = static_cast<int>(value.size());
  RIDGELINE_ASSERT(sqlite3_bind_text(statement_, ++bound_, value.data(), size, SQLITE_TRANSIENT) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind_null() {
  RIDGELINE_ASSERT(sqlite3_bind_null(statement_, ++bound_) == SQLITE_OK);
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code != SQLITE_ROW && code != SQLITE_DONE) database_.fail("the study cannot be written or read");
  return code == SQLITE_ROW;
}

void Statement::run() {
  while (step()) {
  }
}

bool Statement::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }
double Statement::number(int column) const { return sqlite3_column_double(statement_, column); }

std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  const int size = sqlite3_column_bytes(statement_, column);
  return text == nullptr ? std::string() : std::string(text, static_cast<size_t>(size));
}

std::optional<double> Statement::optional_number(int column) const {
  if (is_null(column)) return std::nullopt;
  return number(column);
}

// "immediate": the lock for writing is taken at once, so that two writers wait for each other and do not fail half way.
Transaction::Transaction(Database& database) : database_(database) { database_.execute("begin immediate"); }

Transaction::~Transaction() {
  if (!open_) return;
  try {
    database_.execute("rollback");
  } catch (const Error&) {
    // SQLite has rolled back by itself, after a full disk for instance.
  }
}

void Transaction::commit() {
  database_.execute("commit");
  open_ = false;
}

}  // namespace ridgeline::study
